/**
 * What a server says that is there and in no position to do what it is asked: it had no effect and may be repeated. One list
 * for whoever decides about that (entries of a batch) and whoever tells of it (errors of the store).
 */

/** By the word that the answer begins with. */
const REASONS = new Map([
  ['OOM', 'its memory is full (OOM); give it more, or raise maxmemory'],
  ['READONLY', 'it is a replica (READONLY)'],
  ['MISCONF', 'it cannot save its data to the disk (MISCONF)'],
  ['NOREPLICAS', 'too few replicas are connected to it (NOREPLICAS)'],
  ['MASTERDOWN', 'it has lost its primary (MASTERDOWN)'],
  ['LOADING', 'it is still loading its data (LOADING)'],
  ['CLUSTERDOWN', 'its cluster is down (CLUSTERDOWN)'],
  ['MOVED', 'the key is on another node by now (MOVED)'],
])

/** The word stands first, or behind where in a script it was said. */
const FIRST_WORD = /^(?:ERR Error running script[^@]*)?(?:@?user_script: ?\d+: ?)*-?([A-Z]+)\b/

/** @returns why it does not do it now, as the end of a sentence; null if `answer` says something else. */
export function whyNotNow(answer: string): string | null {
  return REASONS.get(FIRST_WORD.exec(answer)?.[1] ?? '') ?? null
}
