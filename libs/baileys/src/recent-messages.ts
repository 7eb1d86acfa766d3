/** The last messages by id, a bounded number: for quoting, and for a recipient who could not decrypt. */
export class RecentMessages<T> {
  private readonly byId = new Map<string, T>()

  constructor(private readonly limit: number) {}

  add(id: string, message: T): void {
    this.byId.delete(id)
    this.byId.set(id, message)
    if (this.byId.size > this.limit)
      for (const oldest of this.byId.keys()) return void this.byId.delete(oldest)
  }

  get(id: string): T | undefined {
    return this.byId.get(id)
  }
}
