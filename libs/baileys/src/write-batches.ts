/** One write at a time; what is asked for meanwhile becomes the next one, so that many small changes share a trip. */
interface Batch {
  changes: Map<string, string | null>
  done: Promise<void>
}

export class WriteBatches {
  private current: Batch | undefined
  private next: Batch | undefined

  /** @param run writes one batch; it is never called while a former call is under way. */
  constructor(private readonly run: (changes: ReadonlyMap<string, string | null>) => Promise<void>) {}

  /** Resolves once these changes are written; within a batch later ones win. */
  write(changes: ReadonlyMap<string, string | null>): Promise<void> {
    if (this.next === undefined) {
      const batch: Batch = { changes: new Map(), done: Promise.resolve() }
      const before = this.current?.done ?? Promise.resolve()
      this.next = batch
      batch.done = before.then(noop, noop).then(() => this.begin(batch))
      // Each caller has the promise; the batch itself must not count as unhandled.
      batch.done.catch(noop)
    }
    for (const [name, text] of changes) this.next.changes.set(name, text)
    return this.next.done
  }

  /** Undefined: nothing on its way; null: on its way out. */
  unwritten(name: string): string | null | undefined {
    for (const batch of [this.next, this.current]) {
      if (batch?.changes.has(name)) return batch.changes.get(name)
    }
    return undefined
  }

  /** Resolves when nothing is being written. Never rejects. */
  async idle(): Promise<void> {
    for (let batch = this.next ?? this.current; batch !== undefined; batch = this.next ?? this.current) {
      await batch.done.catch(noop)
    }
  }

  private async begin(batch: Batch): Promise<void> {
    this.current = batch
    this.next = undefined
    try {
      await this.run(batch.changes)
    } finally {
      this.current = undefined
    }
  }
}

function noop(): void {}
