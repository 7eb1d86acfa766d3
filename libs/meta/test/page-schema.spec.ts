/** The readers of Messenger's and Instagram's webhook bodies take and refuse what their schemas do. */
import { expect, it } from '@jest/globals'
import { SeededRandom, seedOfRun } from '@botmesh/core/testing'
import { compareReads } from '../../../test/doubles/compare-reads.js'
import { samplesBeside } from '../../../test/support/page-transport/fixture.js'
import * as schema from '../src/page/page-schema.js'

/** The samples lie with the packages of which this one holds what they share. */
const samples = ['messenger', 'instagram'].flatMap((name) => {
  const beside = samplesBeside(new URL(`../../${name}/test/`, import.meta.url).href)
  return beside.names.map((one) => beside.text(one))
})

it('scenario 25 in kind: on samples and 1,500 damaged ones, each reader agrees with its schema, and mostly needs no zod', () => {
  // Not derived from a schema: its numbers may come as text.
  const { readEdit: _, ...readers } = schema
  const counts = compareReads(readers, samples, 1500, new SeededRandom(seedOfRun()))
  for (const [name, { quick, byZod, refused }] of Object.entries(counts)) {
    expect([name, quick > byZod, refused > 0]).toEqual([name, true, true])
  }
})
