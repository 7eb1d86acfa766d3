/** Conformance of elections: leaderships are turns of `lead:<name>`, with the same guarantees. */
import type { CampaignListener, Candidacy, Coordinator, Leadership } from '../../contracts/coordinator.js'
import { onBed, type CoordinationBed, type CoordinatorFixture } from './coordination-bed.js'
import type { TestApi } from './test-api.js'

class Campaign implements CampaignListener {
  readonly events: string[] = []
  leadership: Leadership | null = null
  readonly candidacy: Candidacy
  private waiters: { event: string; resolve: () => void }[] = []

  constructor(coordinator: Coordinator, name: string) {
    this.candidacy = coordinator.elections.campaign(name, this)
  }

  onLead(leadership: Leadership): void {
    this.leadership = leadership
    this.note('lead')
  }

  onFollow(reason: string): void {
    this.leadership = null
    this.note(reason)
  }

  /** Resolves when `event` has happened. */
  heard(bed: CoordinationBed, event: string): Promise<void> {
    if (this.events.includes(event)) return Promise.resolve()
    return bed.until(new Promise((resolve) => this.waiters.push({ event, resolve })))
  }

  private note(event: string): void {
    this.events.push(event)
    for (const waiter of this.waiters) if (waiter.event === event) waiter.resolve()
  }
}

export function electionSuite({ describe, it, expect }: TestApi, fixture: CoordinatorFixture): void {
  describe('elections', () => {
    it(
      'J2: tryLead gives a leadership or null, at once, and it is free again after release',
      onBed(fixture, async (bed) => {
        const [a, b] = [bed.coordinator(), bed.coordinator()]
        const first = await bed.until(a.tryLead('job:report'))
        expect(first?.name).toBe('job:report')
        first?.assertHeld()
        expect(await bed.until(b.tryLead('job:report'))).toBeNull()
        expect(await bed.until(a.tryLead('job:report'))).toBeNull()
        expect((await bed.until(b.tryLead('job:other')))?.name).toBe('job:other')
        await bed.until(first?.release() ?? Promise.reject(new Error('not elected')))
        const second = await bed.until(b.tryLead('job:report'))
        expect(second?.fence).toBeGreaterThan(first?.fence ?? Infinity)
      }),
    )

    it(
      'Z7: a leader that stops is followed at once; a standby is told so once',
      onBed(fixture, async (bed) => {
        const [a, b] = [bed.coordinator(), bed.coordinator()]
        const first = new Campaign(a, 'transport')
        await first.heard(bed, 'lead')
        const second = new Campaign(b, 'transport')
        await second.heard(bed, 'standby')
        const fence = first.leadership?.fence ?? 0
        const since = bed.elapsed()
        await bed.until(first.candidacy.stop())
        await second.heard(bed, 'lead')
        expect(bed.elapsed() - since).toBeLessThan(bed.leaseMs / 2)
        expect(second.leadership?.fence).toBeGreaterThan(fence)
        expect(first.events).toEqual(['lead', 'stopped'])
        expect(second.events).toEqual(['standby', 'lead'])
      }),
    )

    it(
      'scenario 11: a dead leader is followed after its lease, exactly once, also by its own successor',
      onBed(fixture, async (bed) => {
        const a = bed.coordinator({ replicaId: 'a' })
        const first = new Campaign(a, 'transport')
        await first.heard(bed, 'lead')
        await bed.crash(a)
        const again = bed.coordinator({ replicaId: 'a' })
        const second = new Campaign(again, 'transport')
        await second.heard(bed, 'standby')
        const since = bed.elapsed()
        await second.heard(bed, 'lead')
        expect(bed.elapsed() - since).toBeGreaterThan(bed.leaseMs / 2)
        await bed.pass(bed.leaseMs)
        expect(second.events).toEqual(['standby', 'lead'])
      }),
    )

    it(
      'P3: one who resigns does not stand for a while, then stands again',
      onBed(fixture, async (bed) => {
        const [a, b] = [bed.coordinator(), bed.coordinator()]
        const first = new Campaign(a, 'transport')
        await first.heard(bed, 'lead')
        const second = new Campaign(b, 'transport')
        await second.heard(bed, 'standby')
        await bed.until(first.candidacy.resign('transport-down', bed.leaseMs / 4))
        await second.heard(bed, 'lead')
        await first.heard(bed, 'standby')
        expect(first.events).toEqual(['lead', 'transport-down', 'standby'])
        await bed.until(b.stop())
        await bed.until(
          (async () => {
            while (first.leadership === null) await bed.pass(10)
          })(),
        )
        expect(second.events).toEqual(['standby', 'lead', 'stopped'])
      }),
    )

    it(
      'scenario 9: a leadership that is lost is told as lost, its signal aborts, and the candidate stands again',
      onBed(fixture, async (bed) => {
        const a = bed.coordinator()
        const campaign = new Campaign(a, 'transport')
        await campaign.heard(bed, 'lead')
        const first = campaign.leadership
        await bed.wipe()
        await campaign.heard(bed, 'lost')
        expect(first?.signal.aborted).toBe(true)
        await bed.until(
          (async () => {
            while (campaign.leadership === null) await bed.pass(10)
          })(),
        )
        expect(campaign.leadership?.fence).toBeGreaterThan(first?.fence ?? Infinity)
        expect(campaign.events).toEqual(['lead', 'lost', 'lead'])
      }),
    )
  })
}
