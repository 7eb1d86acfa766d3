/** What is refused at construction says whose option it was, and stays the error that it was. */
import { describe, expect, it } from '@jest/globals'
import {
  checkedFor,
  ConfigError,
  parseDuration,
  refuseUnknownOptions,
  requireOneOf,
  requireText,
} from '../../src/index.js'

function thrownBy(run: () => unknown): unknown {
  try {
    run()
  } catch (error) {
    return error
  }
  throw new Error('Nothing was refused.')
}

describe('C2, bad input: checkedFor', () => {
  it.each<[string, () => unknown, RegExp]>([
    [
      'a duration',
      () => parseDuration('leaseMs', 'soon'),
      /^RedisStore option "leaseMs" is "soon"; accepted: /,
    ],
    ['a text', () => requireText('leaseMs', ''), /^RedisStore option "leaseMs" is ""; accepted: /],
    [
      'a choice',
      () => requireOneOf('leaseMs', 'c', ['a', 'b']),
      /^RedisStore option "leaseMs" is "c"; accepted: 'a', 'b'/,
    ],
  ])('%s is refused with its owner, in the message and as data', (_, read, message) => {
    const error = thrownBy(() => checkedFor('RedisStore', read)) as ConfigError
    expect(error).toBeInstanceOf(ConfigError)
    expect(error.message).toMatch(message)
    expect(error.details).toMatchObject({ option: 'leaseMs', owner: 'RedisStore' })
    expect(error.stack).toContain(error.message)
    expect((thrownBy(read) as ConfigError).message).toMatch(/^Option "leaseMs" is /)
  })

  it('the error is the one that was thrown: its class, its stack, its cause', () => {
    class Stricter extends ConfigError {}
    const cause = new Error('why')
    const first = new Stricter((what) => `${what} costs $& too much.`, { option: 'price' }, cause)
    const frames = first.stack?.split('\n').slice(1)
    const error = thrownBy(() =>
      checkedFor('Shop', () => {
        throw first
      }),
    ) as Stricter
    expect(error).toBe(first)
    expect(error.message).toBe('Shop option "price" costs $& too much.')
    expect(error.stack?.split('\n').slice(1)).toEqual(frames)
    expect(error.cause).toBe(cause)
  })

  it('who owns it more closely keeps it, a message of its own stays, and other errors pass as they are', () => {
    const inner = () =>
      checkedFor('Outer', () => refuseUnknownOptions('Outer files', { tipes: 1 }, ['types']))
    const error = thrownBy(inner) as ConfigError
    expect(error.message).toMatch(/^Outer files has no option "tipes"; did you mean "types"/)
    expect(error.details.owner).toBe('Outer files')
    const worded = new ConfigError('This option "x" cannot be.', { option: 'x' })
    expect(worded.ownedBy('Outer').message).toBe('This option "x" cannot be.')
    expect(worded.details.owner).toBe('Outer')
    const other = new TypeError('Option "x" is no ConfigError.')
    const passed = thrownBy(() =>
      checkedFor('Outer', () => {
        throw other
      }),
    )
    expect(passed).toBe(other)
  })
})
