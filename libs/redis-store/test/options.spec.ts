/** What is refused at construction: bad input, with a message that names the culprit and never shows a secret. */
import { describe, expect, it } from '@jest/globals'
import { ConfigError } from '@botmesh/core'
import { Cluster, Redis } from 'ioredis'
import { RedisCoordinator, RedisStore } from '../src/index.js'

function refusal(make: () => unknown): ConfigError {
  try {
    make()
  } catch (error) {
    if (error instanceof ConfigError) return error
    throw error
  }
  throw new Error('It was accepted.')
}

/** Options as plain JavaScript may give them. */
const anything = (options: object): never => options as never

describe('C2, bad input: options of RedisStore and RedisCoordinator', () => {
  it('an undefined url is a ConfigError that names it', () => {
    const error = refusal(() => new RedisStore({ url: undefined, prefix: 'tienda' }))
    expect(error.details.option).toBe('url')
    expect(error.message).toMatch(/"url" of RedisStore is undefined.*redis:\/\//)
    expect(refusal(() => new RedisCoordinator({ url: '' })).message).toMatch(/"url".*empty/)
  })

  it.each([
    ['http://localhost', /begins with "http:/],
    ['localhost:6379', /begins with "localhost:/],
    ['redis://', /names no host|cannot be read/],
    ['redis://localhost/first', /database/],
    ['not a url', /cannot be read/],
  ])('the url %s is refused', (url, why) => {
    expect(refusal(() => new RedisStore({ url })).message).toMatch(why)
  })

  it('a password in a bad url is never shown', () => {
    const error = refusal(() => new RedisStore({ url: 'rediss://ana:s3cret@host/one' }))
    expect(JSON.stringify([error.message, error.details])).not.toContain('s3cret')
  })

  it('an unknown option is refused with the near name', () => {
    const store = refusal(() => new RedisStore(anything({ url: 'redis://localhost', prefx: 'a' })))
    expect(store.message).toMatch(/no option "prefx"; did you mean "prefix"\?/)
    const coordinator = refusal(
      () => new RedisCoordinator(anything({ url: 'redis://localhost', leaseMS: 3 })),
    )
    expect(coordinator.message).toMatch(/no option "leaseMS"; did you mean "leaseMs"\?/)
    const made = new RedisStore({ url: 'redis://localhost' })
    expect(refusal(() => made.coordinator(anything({ lease: 3 }))).message).toMatch(/no option "lease"/)
  })

  it.each([
    [{ leaseMs: '15 s' }, /"leaseMs" is "15 s"/],
    [{ leaseMs: 999 }, /from 1000/],
    [{ maxPollMs: -1 }, /"maxPollMs" is -1/],
    [{ dedupeMs: 'never' }, /"dedupeMs"/],
    [{ maxWaitingPerChat: 0 }, /"maxWaitingPerChat" is 0/],
    [{ prefix: '' }, /"prefix"/],
    [{ layout: 'clustered' }, /"layout" is "clustered".*'single', 'cluster'/],
    [{ shards: 4 }, /"shards" goes with layout 'cluster'/],
    [{ layout: 'cluster', shards: 0 }, /"shards" is 0.*from 1 to 1024/],
    [{ password: 'x' }, /"password" goes with "sentinels" or "cluster"/],
  ])('%j is refused', (options, why) => {
    expect(
      refusal(() => new RedisCoordinator(anything({ url: 'redis://localhost', ...options }))).message,
    ).toMatch(why)
  })

  it('S3: a client of a cluster, something that is no client, and both url and client are refused', () => {
    const cluster = new Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true })
    expect(refusal(() => new RedisStore(anything({ client: cluster }))).message).toMatch(/Redis Cluster/)
    expect(refusal(() => new RedisStore(anything({ client: {} }))).message).toMatch(/not an ioredis client/)
    const client = new Redis({ lazyConnect: true })
    expect(refusal(() => new RedisStore({ client, url: 'redis://localhost' })).message).toMatch(/not both/)
  })
})
