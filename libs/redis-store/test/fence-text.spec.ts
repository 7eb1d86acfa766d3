/** Fences as text, against the language's own conversions. */
import { expect, test } from '@jest/globals'
import { fenceText, readDigits } from '../src/fence-text.js'

const NUMBERS = [
  0,
  7,
  999_999,
  1_000_000,
  1_000_001,
  1_764_478_991_234_567,
  1_764_478_991_000_000,
  2 ** 53 - 1,
]

test.each(NUMBERS)('I6: the fence %d is written as its decimal digits and read back', (fence) => {
  expect(fenceText(fence)).toBe(String(fence))
  expect(readDigits(`G${fence} `, 1, 1 + String(fence).length)).toBe(fence)
})

test('I6: fences are written alike whatever was written before them', () => {
  for (let fence = 999_990; fence < 1_000_010; fence += 1) expect(fenceText(fence)).toBe(String(fence))
})

test.each([
  ['12a', 0, 3],
  ['', 0, 0],
  ['12', 1, 1],
  [' 12', 0, 3],
])('I6: %j is no fence', (text, from, to) => {
  expect(readDigits(text, from, to)).toBeNaN()
})
