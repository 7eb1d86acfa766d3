/**
 * The oracle: looks at every turn that any process noted, and counts those that it would not have allowed. Turns of one
 * chat never overlap; they begin in their order, which is that of their fences for turns, and for messages in a queue
 * the one in which the same process put them there (between two processes a queue promises none).
 */

/** Numbers that a note consists of. */
export const NOTE = 5

/** Notes of one process: which chat, whose order (0 for all fences), which place in it, from when to when in µs. */
export class Notes {
  #numbers = new Float64Array(NOTE * 3_000_000)
  #length = 0
  #dropped = 0

  add(chat, source, order, from, to) {
    if (this.#length + NOTE > this.#numbers.length) {
      this.#dropped += 1
      return
    }
    this.#numbers.set([chat, source, order, from, to], this.#length)
    this.#length += NOTE
  }

  clear() {
    this.#length = 0
    this.#dropped = 0
  }

  /** Turns that found no room: nobody judged them. */
  get dropped() {
    return this.#dropped
  }

  /** To be sent to the process that judges. */
  taken() {
    return this.#numbers.slice(0, this.#length)
  }
}

/** @param {Float64Array[]} lists the notes of each process */
export function judge(lists) {
  let overlaps = 0
  let disorders = 0
  for (const turns of byChat(lists).values()) {
    turns.sort((a, b) => a.from - b.from)
    const last = new Map()
    let busyUntil = -Infinity
    for (const { source, order, from, to } of turns) {
      if (from < busyUntil) overlaps += 1
      if (order < (last.get(source) ?? -Infinity)) disorders += 1
      busyUntil = Math.max(busyUntil, to)
      last.set(source, order)
    }
  }
  return { overlaps, disorders }
}

function byChat(lists) {
  const chats = new Map()
  for (const notes of lists) {
    for (let at = 0; at < notes.length; at += NOTE) {
      const [chat, source, order, from, to] = notes.subarray(at, at + NOTE)
      const turns = chats.get(chat)
      const turn = { source, order, from, to }
      if (turns) turns.push(turn)
      else chats.set(chat, [turn])
    }
  }
  return chats
}
