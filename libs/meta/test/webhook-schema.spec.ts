/** The readers of the platform's webhook bodies take and refuse what their schemas do. */
import { expect, it } from '@jest/globals'
import { SeededRandom, seedOfRun } from '@botmesh/core/testing'
import { compareReads } from '../../../test/doubles/compare-reads.js'
import * as schema from '../src/webhook-schema.js'
import { sampleNames, sampleText } from './samples.js'

it('scenario 25 in kind: on samples and 1,500 damaged ones, each reader agrees with its schema, and mostly needs no zod', () => {
  const { readBody, ...others } = schema
  const readers = { ...readBody, ...others }
  const samples = sampleNames.map(sampleText)
  const counts = compareReads(readers, samples, 1500, new SeededRandom(seedOfRun()))
  for (const [name, { quick, byZod, refused }] of Object.entries(counts)) {
    expect([name, quick > byZod, refused > 0]).toEqual([name, true, true])
  }
})
