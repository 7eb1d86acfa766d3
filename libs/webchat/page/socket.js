// The connection: says hello with the stored visitor, comes back by itself with growing pauses, and sends what
// the visitor wrote one message at a time, again and again under the same id, until the server acknowledges it.
// Everything that must survive a reload is in localStorage; one key a message, so that tabs do not overwrite each
// other. Files are kept as long as the page is open.

import { Upload } from './upload.js'

const VERSION = 1
const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 15_000
const ACK_TIMEOUT_MS = 15_000
const QUIET_MS = 25_000
const PONG_TIMEOUT_MS = 10_000
/** A file that the connection did not survive so often is given up. */
const FILE_TRIES = 5
const CLOSE = { badSignature: 4401, outdated: 4426 }

export class ChatSocket {
  /** @param on { state(name), message(entry), pending(entry), sent(cid), failed(cid, nack), progress(cid, part),
   *   files(limits or undefined), typing() } */
  constructor(url, on) {
    this.url = url
    this.on = on
    this.prefix = `botmesh:${url.pathname}:`
    this.memory = new Map()
    this.lastSeen = null
    this.visitorOfLastSeen = null
    this.attempts = 0
    this.ready = false
    this.stopped = false
    this.outbox = this.restore()
    for (const entry of this.outbox) on.pending(entry)
    // No reason to wait out a pause when the network is back or the visitor looks again.
    addEventListener('online', () => this.hurry())
    document.addEventListener(
      'visibilitychange',
      () => document.visibilityState === 'visible' && this.hurry(),
    )
    this.connect()
  }

  get visitorId() {
    return this.visitor()?.id
  }

  send(text, buttonId) {
    const entry = { cid: newId(), text, at: Date.now(), ...(buttonId === undefined ? {} : { buttonId }) }
    this.outbox.push(entry)
    this.write(`out:${entry.cid}`, entry)
    this.on.pending(entry)
    this.flush()
  }

  /** Whether a file is lost if the page is left now. */
  get uploading() {
    return this.outbox.some((entry) => entry.file)
  }

  sendFile(file) {
    const entry = { cid: newId(), file, name: file.name, size: file.size, at: Date.now(), tries: 0 }
    this.on.pending(entry)
    const reason = this.refusal(file)
    if (reason) return this.on.failed(entry.cid, { reason, ...this.files })
    this.outbox.push(entry)
    this.flush()
  }

  // What the server would say too, without sending anything.
  refusal(file) {
    if (file.size === 0) return 'file-empty'
    if (this.files && file.size > this.files.maxBytes) return 'file-size'
  }

  connect() {
    clearTimeout(this.reconnectTimer)
    this.on.state('connecting')
    const socket = new WebSocket(this.url)
    this.socket = socket
    socket.onopen = () => {
      const visitor = this.visitor()
      const after = visitor && visitor.id === this.visitorOfLastSeen ? this.lastSeen : null
      this.push({ t: 'hello', v: VERSION, visitor, after, lang: navigator.language })
    }
    socket.onmessage = ({ data }) => socket === this.socket && this.receive(JSON.parse(data))
    socket.onclose = ({ code }) => socket === this.socket && this.closed(code)
    this.watch()
  }

  receive(frame) {
    this.watch()
    if (frame.t === 'welcome') return this.welcome(frame)
    if (frame.t === 'msg') {
      this.lastSeen = frame.seq
      return this.on.message(frame)
    }
    if (frame.t === 'typing') return this.on.typing()
    if (frame.t === 'go' || frame.t === 'got') return this.onUpload(frame)
    if (frame.t === 'ack' || (frame.t === 'nack' && frame.retryAfterMs === undefined))
      return this.settle(frame)
    if (frame.t === 'nack') {
      clearTimeout(this.ackTimer)
      this.inFlight = undefined
      // Put off is not tried.
      if (this.outbox[0]?.file) this.outbox[0].tries -= 1
      this.retryTimer = setTimeout(() => this.flush(), frame.retryAfterMs)
    }
  }

  onUpload(frame) {
    const entry = this.outbox[0]
    if (frame.cid !== this.inFlight || !entry?.file) return
    this.awaitAnswer()
    if (frame.t === 'got') {
      this.upload?.got(frame.bytes)
      return this.on.progress(frame.cid, frame.bytes / entry.size)
    }
    const { socket } = this
    const push = (chunk) => socket.readyState === WebSocket.OPEN && socket.send(chunk)
    this.upload = new Upload(entry.file, frame.chunkBytes, push, () => {
      this.push({ t: 'file-stop', cid: frame.cid })
      this.settle({ t: 'nack', cid: frame.cid, reason: 'file-lost' })
    })
  }

  awaitAnswer() {
    clearTimeout(this.ackTimer)
    this.ackTimer = setTimeout(() => this.restart(), ACK_TIMEOUT_MS)
  }

  welcome(frame) {
    const stored = this.visitor()
    if (!frame.known && stored && stored.id !== frame.visitor.id) {
      // Another tab was faster in becoming somebody: be the same visitor.
      return this.restart()
    }
    this.write('visitor', frame.visitor)
    this.visitorOfLastSeen = frame.visitor.id
    this.attempts = 0
    this.ready = true
    this.files = frame.files
    this.on.files(frame.files)
    this.on.state('online')
    this.flush()
  }

  settle(frame) {
    const { t, cid } = frame
    this.upload?.stop()
    this.upload = undefined
    clearTimeout(this.ackTimer)
    this.inFlight = undefined
    this.outbox = this.outbox.filter((entry) => entry.cid !== cid)
    this.write(`out:${cid}`, undefined)
    if (t === 'ack') this.on.sent(cid)
    else this.on.failed(cid, frame)
    this.flush()
  }

  // One in flight: a message that has to wait is never overtaken by a later one.
  flush() {
    clearTimeout(this.retryTimer)
    const next = this.outbox[0]
    if (!this.ready || this.inFlight !== undefined || next === undefined) return
    if (next.file && next.tries++ >= FILE_TRIES) {
      return this.settle({ t: 'nack', cid: next.cid, reason: 'file-lost' })
    }
    this.inFlight = next.cid
    if (next.file) {
      const type = next.file.type.split(';', 1)[0].trim()
      this.push({ t: 'file', cid: next.cid, name: next.name, type, size: next.size })
    } else this.push({ t: 'msg', cid: next.cid, text: next.text, buttonId: next.buttonId })
    this.awaitAnswer()
  }

  closed(code) {
    this.quiet()
    if (code === CLOSE.badSignature) this.write('visitor', undefined)
    if (code === CLOSE.outdated) {
      this.stopped = true
      return this.on.state('outdated')
    }
    this.on.state('offline')
    const pause = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.attempts++)
    this.reconnectTimer = setTimeout(() => this.connect(), pause * (0.5 + Math.random() / 2))
  }

  restart() {
    const old = this.socket
    this.socket = undefined
    old?.close()
    this.closed(0)
  }

  hurry() {
    if (this.ready || this.stopped || this.socket?.readyState === WebSocket.CONNECTING) return
    if (this.socket?.readyState === WebSocket.OPEN) return
    this.attempts = 0
    this.connect()
  }

  // A dead network closes no socket: ask when it has been quiet, and give up on silence.
  watch() {
    clearTimeout(this.watchTimer)
    this.watchTimer = setTimeout(() => {
      if (this.socket?.readyState === WebSocket.OPEN && this.ready) this.push({ t: 'ping' })
      this.watchTimer = setTimeout(() => this.restart(), PONG_TIMEOUT_MS)
    }, QUIET_MS)
  }

  quiet() {
    this.ready = false
    this.upload?.stop()
    this.upload = undefined
    this.inFlight = undefined
    for (const timer of [this.ackTimer, this.retryTimer, this.watchTimer, this.reconnectTimer])
      clearTimeout(timer)
  }

  push(frame) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(frame))
  }

  visitor() {
    return this.read('visitor')
  }

  restore() {
    const prefix = `${this.prefix}out:`
    let names = []
    try {
      names = Object.keys(localStorage).filter((name) => name.startsWith(prefix))
    } catch {
      // Storage is denied: this visit only.
    }
    const entries = names.map((name) => this.read(name.slice(this.prefix.length))).filter(Boolean)
    return entries.sort((one, other) => one.at - other.at)
  }

  read(name) {
    try {
      return JSON.parse(localStorage.getItem(this.prefix + name) ?? 'null') ?? undefined
    } catch {
      return this.memory.get(name)
    }
  }

  write(name, value) {
    try {
      if (value === undefined) localStorage.removeItem(this.prefix + name)
      else localStorage.setItem(this.prefix + name, JSON.stringify(value))
    } catch {
      this.memory.set(name, value)
    }
  }
}

// randomUUID exists on secure origins only; getRandomValues everywhere.
function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('')
}
