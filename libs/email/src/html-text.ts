/** HTML of a mail → text that reads the same; quoted mail comes out with `>`, as reply-text.ts expects it. Pure. */
import { compile } from 'html-to-text'

const MAX_HTML_CHARS = 512 * 1024
const MAX_DEPTH = 200
const MAX_CHILDREN = 20_000

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

export function textOfHtml(html: string): string {
  // Cut here: the library would say so on the console.
  return convert(html.slice(0, MAX_HTML_CHARS))
}
