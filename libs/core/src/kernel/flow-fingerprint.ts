/**
 * A flow's fingerprint (H2): equal as long as a checkpoint of one version of the flow means the same in another.
 * It covers the names and kinds of the steps in their order, and the fields of a form; not the triggers (they do
 * not say where a flow stands) and not the code of the steps (a corrected typo must not interrupt anybody).
 */

/** What of a step can be fingerprinted. */
export interface StepShape {
  name: string
  kind: 'step' | 'ask' | 'do' | 'form'
  /** Names of a form's questions, in order. */
  fields?: readonly string[]
}

const OFFSETS = [0x811c9dc5, 0x01000193 ^ 0x5bd1e995] as const
const PRIME = 0x01000193

/** @returns 16 hexadecimal digits. Two flows of the same shape have the same. */
export function fingerprintOf(steps: readonly StepShape[]): string {
  const text = JSON.stringify(
    steps.map((step) => [step.kind, step.name, ...(step.fields === undefined ? [] : [step.fields])]),
  )
  return OFFSETS.map((offset) => fnv1a(text, offset)).join('')
}

/** FNV-1a over UTF-16 units. Not for secrets: it only has to notice change. */
function fnv1a(text: string, offset: number): string {
  let hash = offset
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    hash = Math.imul(hash ^ (unit & 0xff), PRIME)
    hash = Math.imul(hash ^ (unit >>> 8), PRIME)
  }
  return (hash >>> 0).toString(16).padStart(8, '0')
}
