/**
 * One local FIFO per chat: jobs of a chat run one after the other, chats side by side (T1 within the process, T2).
 * A chat without jobs takes no memory.
 */
type Job = () => Promise<void>

export class ChatLanes {
  private readonly lanes = new Map<string, Job[]>()

  /** Jobs must not reject. Starts at once if the lane is free. */
  run(key: string, job: Job): void {
    const lane = this.lanes.get(key)
    if (lane !== undefined) {
      lane.push(job)
      return
    }
    const fresh: Job[] = []
    this.lanes.set(key, fresh)
    void this.drive(key, fresh, job)
  }

  private async drive(key: string, lane: Job[], first: Job): Promise<void> {
    for (let job: Job | undefined = first; job !== undefined; job = lane.shift()) await job()
    this.lanes.delete(key)
  }

  get size(): number {
    return this.lanes.size
  }
}
