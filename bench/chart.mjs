/**
 * Bar charts as SVG, of nothing but text and rectangles. They are read without colour (ours are filled, others hatched,
 * what does not exclude is dotted), and without eyes: title and description say all the figures.
 */

const WIDTH = 800
const VALUES = 110
const ROW = 30
const TOP = 80
/** Of a letter of this size, a little more than most fonts take. */
const LETTER = 7.6
const KINDS = [
  { kind: 'ours', fill: '#1f3a5f', says: 'Botmesh' },
  { kind: 'other', fill: 'url(#hatched)', says: 'others' },
  { kind: 'loose', fill: 'url(#dotted)', says: 'does not exclude' },
]

const escape = (text) =>
  String(text).replace(/[&<>"]/g, (one) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[one])

/** Three digits that count, and no more than a reader wants. */
export function readable(value) {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}

/**
 * @param {{ title: string, subtitle: string, unit: string, rows: Array<{ label: string, value: number, low?: number, high?: number, kind: 'ours' | 'other' | 'loose' }> }} chart
 *   `low` and `high` are drawn as a line over the bar
 */
export function barChart({ title, subtitle, unit, rows }) {
  const labels = Math.max(100, ...rows.map(({ label }) => label.length * LETTER)) + 24
  const most = Math.max(...rows.map(({ value, high }) => high ?? value)) || 1
  const scale = (WIDTH - labels - VALUES) / most
  const spreads = rows.some(({ high }) => high !== undefined)
  const height = TOP + rows.length * ROW + 40
  const says = rows.map(({ label, value }) => `${label} ${readable(value)} ${unit}`).join('; ')
  const kinds = KINDS.filter(({ kind }) => rows.some((row) => row.kind === kind))
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="title desc" font-family="system-ui, sans-serif" font-size="14" fill="#000">`,
    `<title id="title">${escape(`${title}: ${subtitle}`)}</title>`,
    `<desc id="desc">${escape(`Bars, in ${unit}: ${says}.`)}</desc>`,
    '<defs>',
    '<pattern id="hatched" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6" fill="#fff"/><rect width="2" height="6" fill="#555"/></pattern>',
    '<pattern id="dotted" width="8" height="8" patternUnits="userSpaceOnUse"><rect width="8" height="8" fill="#fff"/><circle cx="4" cy="4" r="1.2" fill="#555"/></pattern>',
    '</defs>',
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    `<text x="12" y="26" font-size="16" font-weight="bold">${escape(title)}</text>`,
    `<text x="12" y="46">${escape(subtitle)}</text>`,
    `<text x="12" y="66">${escape(unit)}${spreads ? ': median of the rounds; the line goes from the least to the most' : ''}</text>`,
    ...rows.flatMap((row, n) => bar(row, { top: TOP + n * ROW, labels, scale })),
    ...kinds.flatMap(({ fill, says: meaning }, n) => [
      `<rect x="${labels + n * 150}" y="${height - 26}" width="14" height="14" fill="${fill}" stroke="#000"/>`,
      `<text x="${labels + 20 + n * 150}" y="${height - 14}">${escape(meaning)}</text>`,
    ]),
    '</svg>',
    '',
  ].join('\n')
}

function bar({ label, value, low, high, kind }, { top, labels, scale }) {
  const length = Math.max(1, value * scale).toFixed(1)
  const { fill } = KINDS.find((one) => one.kind === kind)
  const end = labels + Math.max(value, high ?? value) * scale + 8
  const parts = [
    `<text x="${labels - 10}" y="${top + 18}" text-anchor="end">${escape(label)}</text>`,
    `<rect x="${labels}" y="${top + 4}" width="${length}" height="${ROW - 10}" fill="${fill}" stroke="#000"/>`,
  ]
  if (low !== undefined && high !== undefined && high > low) {
    const [from, to] = [low, high].map((one) => (labels + one * scale).toFixed(1))
    const middle = top + ROW / 2 - 1
    // White below black: it stands out against a filled bar as well.
    for (const [colour, width] of [
      ['#fff', 5],
      ['#000', 2],
    ])
      parts.push(
        `<line x1="${from}" y1="${middle}" x2="${to}" y2="${middle}" stroke="${colour}" stroke-width="${width}"/>`,
      )
  }
  parts.push(`<text x="${end.toFixed(1)}" y="${top + 18}">${readable(value)}</text>`)
  return parts
}
