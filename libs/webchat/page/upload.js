// One file on its way to the server: in chunks of the size that the server names, a few ahead of what it has
// confirmed, so that pings and answers are not stuck behind the file.

const AHEAD = 4

export class Upload {
  /** @param push sends one binary frame; @param onLost the file cannot be read (it was moved or changed). */
  constructor(file, chunkBytes, push, onLost) {
    this.file = file
    this.chunkBytes = chunkBytes
    this.push = push
    this.onLost = onLost
    this.sent = 0
    this.confirmed = 0
    this.reading = false
    this.stopped = false
    void this.pump()
  }

  got(bytes) {
    this.confirmed = bytes
    void this.pump()
  }

  stop() {
    this.stopped = true
  }

  async pump() {
    if (this.reading) return
    this.reading = true
    try {
      while (this.sent < this.file.size && this.sent - this.confirmed < AHEAD * this.chunkBytes) {
        const chunk = await this.file.slice(this.sent, this.sent + this.chunkBytes).arrayBuffer()
        if (this.stopped) return
        this.sent += chunk.byteLength
        this.push(chunk)
      }
    } catch {
      if (!this.stopped) this.onLost()
    } finally {
      this.reading = false
    }
  }
}
