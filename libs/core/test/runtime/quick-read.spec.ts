/** Readers that look before they ask zod: they take and refuse what zod does, and change nothing that fits. */
import { describe, expect, it } from '@jest/globals'
import { listOf, quickReader } from '@botmesh/core'
import { SeededRandom, seedOfRun } from '@botmesh/core/testing'
import { z } from 'zod'
import { compareReads } from '../../../../test/doubles/compare-reads.js'

const item = z.object({ name: z.string(), note: z.string().optional().catch(undefined) })
const everything = z.object({
  id: z.string().regex(/^\d{1,5}$/),
  title: z.string().min(1),
  count: z.number(),
  flag: z.boolean().optional().catch(undefined),
  place: z.object({ lat: z.number(), long: z.number() }).nullish(),
  either: z.union([z.string(), z.number()]).optional().catch(undefined),
  anything: z.unknown(),
  mended: z.string().catch('x').optional(),
  mendedOrNull: z.string().catch('x').nullish(),
  items: z.array(item).optional().catch(undefined),
  good: listOf(item),
  named: z.record(z.string(), item).optional().catch(undefined),
  end: z.undefined().optional().catch(undefined),
})
const FULL = {
  id: '123',
  title: 'a',
  count: 4,
  flag: true,
  place: { lat: 1, long: 2 },
  either: 'x',
  anything: [1],
  mended: 'm',
  mendedOrNull: 'n',
  items: [{ name: 'a' }, { name: 'b', note: 'c', more: 1 }],
  good: [{ name: 'a' }],
  named: { one: { name: 'a', note: 'b' } },
  more: { of: 'it' },
}

describe('scenario 25 in kind: readers that look before they ask zod', () => {
  const read = quickReader(everything)

  it('what fits is given back as it came; what zod would mend is mended by zod', () => {
    expect(read(FULL)).toBe(FULL)
    const odd = { ...FULL, flag: 'yes', good: [{ name: 1 }, { name: 'b' }, null], end: 1 }
    const { more: _, ...mended } = { ...FULL, flag: undefined, good: [{ name: 'b' }], end: undefined }
    expect(read(odd)).toEqual({ ...mended, items: [{ name: 'a' }, { name: 'b', note: 'c' }] })
    expect(read({ ...FULL, good: 'none' })?.good).toBeUndefined()
  })

  it.each([
    ['a text of another form', { id: '12a' }],
    ['an empty text', { title: '' }],
    ['no number', { count: Number.NaN }],
    ['an infinite number', { count: Number.POSITIVE_INFINITY }],
    ['a list for an object', { place: [] }],
    ['a part of a part', { place: { lat: 1 } }],
  ])('%s is refused', (_, change) => {
    expect(read({ ...FULL, ...change })).toBeUndefined()
  })

  it.each([[undefined], [null], ['{}'], [7], [[FULL]]])('%j is refused', (value) => {
    expect(read(value)).toBeUndefined()
  })

  it('a name that an object of the language has by itself is read as zod reads it', () => {
    const named = JSON.parse('{"__proto__":{"name":"a"},"constructor":{"name":"b"}}') as unknown
    expect(Object.keys(read({ ...FULL, named })?.named ?? {})).toEqual(['constructor'])
  })

  it('takes and refuses what the schema does, on 20,000 damaged values', () => {
    const chance = new SeededRandom(seedOfRun())
    const samples = [FULL, { id: '1', title: 'a', count: 0, anything: null }].map((one) =>
      JSON.stringify(one),
    )
    const { read: counts } = compareReads({ read }, samples, 20_000, chance)
    expect(counts!.quick).toBeGreaterThan(1000)
    expect(counts!.byZod).toBeGreaterThan(1000)
    expect(counts!.refused).toBeGreaterThan(1000)
  })

  it.each([
    ['a default', z.object({ a: z.string().default('x') })],
    ['a transform', z.string().transform(Number)],
    ['coercion', z.object({ a: z.coerce.number() })],
    ['a coerced text', z.coerce.string()],
    ['a strict object', z.strictObject({ a: z.string() })],
    ['a loose object', z.looseObject({ a: z.string() })],
    ['a bounded number', z.number().min(1)],
    ['a bounded list', z.array(z.string()).max(3)],
    ['a longest text', z.string().max(3)],
    ['an address', z.email()],
    ['a trimmed text', z.string().trim()],
    ['a refinement', z.object({ a: z.string() }).refine(() => false)],
    ['a refined flag', z.boolean().refine(() => false)],
    [
      'a refined optional text',
      z
        .string()
        .optional()
        .refine(() => false),
    ],
    ['a whole number', z.int()],
    ['a choice that mends', z.union([z.string().catch('x'), z.number()])],
    ['a choice of objects', z.union([z.object({ a: z.string() }), z.object({ b: z.string() })])],
    ['a record of certain names', z.record(z.string().min(2), z.string())],
    ['a record of listed names', z.record(z.enum(['a']), z.string())],
    ['a pattern that remembers where it was', z.string().regex(/a/g)],
  ])('%s: refused when the reader is made', (_, schema: z.ZodType) => {
    expect(() => quickReader(schema)).toThrow('read this with zod alone')
  })
})
