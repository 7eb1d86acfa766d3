/** docs/handover-matrix.md shows the rows of docs/handover-matrix.json. `UPDATE_DOCS=1` writes them anew. */
import { readFileSync, writeFileSync } from 'node:fs'
import { expect, it } from '@jest/globals'
import { format } from 'prettier'
import { readMatrix } from './matrix.js'
import { renderMatrix, withRows } from './render.js'

const DOCUMENT = new URL('../../../docs/handover-matrix.md', import.meta.url)

it('H1–H11: the hand-over matrix is documented as it is tested', async () => {
  const document = readFileSync(DOCUMENT, 'utf8')
  const wanted = await format(withRows(document, renderMatrix(readMatrix())), {
    parser: 'markdown',
    printWidth: 110,
  })
  if (process.env['UPDATE_DOCS'] !== undefined) writeFileSync(DOCUMENT, wanted)
  else expect(document === wanted).toBe(true)
})
