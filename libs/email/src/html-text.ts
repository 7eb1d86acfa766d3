/** HTML of a mail → text that reads the same; quoted mail comes out with `>`, as reply-text.ts expects it. Pure. */
import { compile } from 'html-to-text'

const MAX_HTML_CHARS = 512 * 1024
const MAX_DEPTH = 200
const MAX_CHILDREN = 20_000
const MAX_TAGS = 30_000
/** More than the depth: many a program leaves paragraphs and cells open. */
const MAX_OPEN = 1_000

const convert = compile({
  // Wrapped lines would break what a program wrote over the quoted mail.
  wordwrap: false,
  limits: { maxDepth: MAX_DEPTH, maxChildNodes: MAX_CHILDREN, ellipsis: '' },
  selectors: [
    { selector: 'img', format: 'skip' },
    { selector: 'style', format: 'skip' },
    { selector: 'a', options: { hideLinkHrefIfSameAsText: true, linkBrackets: ['<', '>'] } },
    ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map((selector) => ({ selector, options: { uppercase: false } })),
  ],
})

/** Elements that have no end, and so do not nest. */
const VOID = /^(area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr)$/

export function textOfHtml(html: string): string {
  // Cut here: the library would say so on the console.
  const bounded = html.slice(0, MAX_HTML_CHARS)
  return isReasonable(bounded) ? convert(bounded) : bounded.replace(/<[^<>]*>/g, ' ').replace(/[ \t]+/g, ' ')
}

/** What no program writes, and keeps a parser busy for a minute, is not parsed: very deep, or made of tags only. */
function isReasonable(html: string): boolean {
  let depth = 0
  let tags = 0
  for (const [, end, name] of html.matchAll(/<(\/?)([a-z][a-z0-9]{0,20})/gi)) {
    tags += 1
    if (end === '/') depth = Math.max(0, depth - 1)
    else if (!VOID.test(name!.toLowerCase())) depth += 1
    if (tags > MAX_TAGS || depth > MAX_OPEN) return false
  }
  return true
}
