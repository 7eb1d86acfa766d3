/** Slots, shards and tags: the same as Redis computes them, spread evenly, and never another (S3). */
import { describe, expect, it } from '@jest/globals'
import { shardOf, shardTags, slotOf } from '../src/cluster-slots.js'
import { ShardKeys } from '../src/keys.js'

describe('S3: slots and shards', () => {
  it('slots are those of Redis', () => {
    // What CLUSTER KEYSLOT answers.
    expect(['123456789', 'foo', 'bar', '', 'ñandú'].map(slotOf)).toEqual([12_739, 12_182, 5061, 0, 6819])
  })

  it.each([1, 2, 3, 5, 16, 64, 1024])(
    'the tags of %i shards lie in slots of their own, evenly spread',
    (shards) => {
      const tags = shardTags(shards)
      expect(new Set(tags).size).toBe(shards)
      tags.forEach((tag, shard) => expect(Math.floor((slotOf(tag) * shards) / 16_384)).toBe(shard))
    },
  )

  it('where things are never changes: another answer would lose what is stored', () => {
    expect(shardTags(16)).toEqual(shardTags(16))
    expect(shardTags(4)).toMatchInlineSnapshot(`
     [
       "3",
       "2",
       "1",
       "0",
     ]
    `)
    expect(['a/b', 'line%3Ae2e/chat-1', 'lead:job', ''].map((name) => shardOf(name, 16)))
      .toMatchInlineSnapshot(`
     [
       13,
       1,
       4,
       0,
     ]
    `)
  })

  it('a chat of a group is where its user is', () => {
    for (let n = 0; n < 50; n += 1) expect(shardOf(`p/group-${n}/ana`, 16)).toBe(shardOf('p/ana', 16))
  })

  it.each(['{eu}', 'shop:{1}:', 'a}b{c', '{}', 'shop%7B'])(
    'C4: braces of a prefix (%s) are escaped: they make no hash tag',
    (prefix) => {
      const { base, slot, holders } = new ShardKeys(prefix, '3')
      expect(base).toBe(`${encodeURIComponent(prefix)}:{3}:`)
      // What a server takes for the tag: the first braces that have something between them.
      for (const key of [base, holders]) expect(/\{([^}]+)\}/.exec(key)?.[1]).toBe('3')
      expect(slot).toBe(slotOf('3'))
    },
  )
})
