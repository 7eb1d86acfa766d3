/**
 * The people of the story: each writes, waits for the answers, thinks a little and goes on, as people do. All write
 * at once. A director may ask for silence: then nobody begins anything new until it is over.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Platforms } from './platforms.js'
import type { Delivery } from './story.js'

const THINK_MS = 60
const POLL_MS = 10

export class People {
  /** Messages of people that were acknowledged by the mesh. */
  messages = 0
  private readonly expected = new Map<string, string[]>()
  private silence: Promise<void> | null = null
  private busy = 0
  private readonly failures: string[] = []

  constructor(
    private readonly platforms: Platforms,
    private readonly url: string,
    /** How long somebody waits for answers before the story counts them as lost. */
    private readonly patienceMs: number,
  ) {}

  /** Everything that each person must be told, in order. */
  get expectations(): ReadonlyMap<string, readonly string[]> {
    return this.expected
  }

  /** What people gave up waiting for. */
  get complaints(): readonly string[] {
    return this.failures
  }

  /** Tells the whole story; resolves when everybody has been answered or has given up. */
  async tell(story: readonly Delivery[], onDelivered: (index: number) => void): Promise<void> {
    const last = new Map<string, Promise<void>>()
    const all = story.map((delivery, index) => {
      const before = delivery.expects.map(({ chat }) => last.get(chat) ?? Promise.resolve())
      const { posted, answered } = this.write(delivery, Promise.all(before), () => onDelivered(index))
      for (const { chat } of delivery.expects)
        last.set(chat, isBurstNext(story, index, chat) ? posted : answered)
      return answered
    })
    await Promise.all(all)
  }

  /** Runs `act` while nobody is waiting for an answer and nobody writes. */
  async inSilence(act: () => Promise<void> | void): Promise<void> {
    let end = () => {}
    this.silence = new Promise<void>((resolve) => {
      end = resolve
    })
    try {
      while (this.busy > 0) await pause(POLL_MS)
      await act()
    } finally {
      this.silence = null
      end()
    }
  }

  private write(delivery: Delivery, before: Promise<unknown>, done: () => void) {
    let startWaiting = () => {}
    const posted = new Promise<void>((resolve) => {
      startWaiting = resolve
    })
    const run = async () => {
      await before
      if (!delivery.burst) await pause(THINK_MS)
      while (this.silence !== null) await this.silence
      this.busy++
      try {
        for (const { chat, says } of delivery.expects)
          this.expected.set(chat, [...(this.expected.get(chat) ?? []), ...says])
        const copies = delivery.twice ? [delivery, delivery] : [delivery]
        await Promise.all(copies.map((copy) => this.platforms.deliver(this.url, copy)))
        this.messages += delivery.expects.length
        done()
        startWaiting()
        await this.awaitAnswers(delivery)
      } finally {
        startWaiting()
        this.busy--
      }
    }
    return { posted, answered: run() }
  }

  private async awaitAnswers({ expects }: Delivery): Promise<void> {
    const goal = expects.map(({ chat }) => ({ chat, count: this.expected.get(chat)?.length ?? 0 }))
    const deadline = performance.now() + this.patienceMs
    while (goal.some(({ chat, count }) => this.platforms.repliesOf(chat).length < count)) {
      if (performance.now() > deadline) {
        this.failures.push(
          `${goal.map(({ chat }) => chat).join(', ')}: no answer within ${this.patienceMs} ms`,
        )
        return
      }
      await pause(POLL_MS)
    }
  }
}

/** Does this person's next message come without waiting for the answer to this one? */
function isBurstNext(story: readonly Delivery[], index: number, chat: string): boolean {
  const next = story.slice(index + 1).find(({ expects }) => expects.some((one) => one.chat === chat))
  return next?.burst === true
}
