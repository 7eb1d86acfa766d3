/**
 * The Lua scripts: one file a transition under `scripts/`, read from the package's sources (which are published) and
 * put together here. This manifest says which parts make which script; headers in the files say what they do.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** A script as it is sent. */
export interface Script {
  readonly source: string
  readonly sha: string
}

/** Parts that stand round the general ones: a batch of common cases needs no more. */
export const FRAME_PARTS = ['single-entry', 'batch-context', 'short-cuts', 'batch-run'] as const

/** Parts that are built only when a batch has an entry that is not one of the common cases ... */
export const TURN_PARTS = ['grant-rule', 'take', 'release', 'batch-turns'] as const

/** ... and those, inside of them, for entries that are neither takes nor releases. In this order. */
export const GENERAL_PARTS = [
  'chat-state',
  'take-reading',
  'commit',
  'withdraw',
  'nudge',
  'session',
  'explain',
  'store-state',
  'journal',
  'batch-general',
] as const

/** Scripts of one file each: KEYS 1 is the shard's `holders`, ARGV 1 its base; of `lock`, as its header says. */
export const PLAIN_SCRIPTS = [
  'join-mesh',
  'stranded',
  'dead-letters',
  'set-user-if',
  'lock',
  'log-append',
] as const
export type PlainScript = (typeof PLAIN_SCRIPTS)[number]

/** For tests that break a rule on purpose: changes the composed source. */
export type ScriptPatch = (source: string) => string

const DIRECTORY = new URL('../src/scripts/', import.meta.url)
const parts = new Map<string, string>()

/** The text of `scripts/<name>.lua`. */
export function scriptPart(name: string): string {
  let text = parts.get(name)
  if (text === undefined) {
    text = readFileSync(new URL(`${name}.lua`, DIRECTORY), 'utf8')
    parts.set(name, text)
  }
  return text
}

function toScript(source: string): Script {
  return { source, sha: createHash('sha1').update(source).digest('hex') }
}

/**
 * The script that carries everything which concerns chats.
 * @param sharded for a node of a cluster.
 * @param limits.waitingPerChat longest queue of one chat. @param limits.idsPerChat committed ids kept of one chat.
 * @param limits.windowMs how long committed ids and the trace of an idle chat are kept, at least.
 */
export function composeBatch(
  limits: { waitingPerChat: number; idsPerChat: number; windowMs: number },
  patch: ScriptPatch = (source) => source,
  sharded = false,
): Script {
  const { waitingPerChat, idsPerChat, windowMs } = limits
  const constants = `local QUEUE_LIMIT, IDS_LIMIT, WINDOW_MS = ${waitingPerChat}, ${idsPerChat}, ${windowMs}`
  const others = GENERAL_PARTS.map((name) => scriptPart(name)).join('\n')
  const general = TURN_PARTS.map((name) =>
    name === 'batch-turns'
      ? `local others\nlocal function everything_else()\n${others}end\n${scriptPart(name)}`
      : scriptPart(name),
  ).join('\n')
  const whole = [
    constants,
    scriptPart('single-entry'),
    scriptPart('batch-context'),
    scriptPart('short-cuts'),
    `local function everything()\n${general}end\n`,
    scriptPart('batch-run'),
  ].join('\n')
  return toScript(published(patch(whole), sharded))
}

/** In a cluster, channels belong to the slot of their hash tag: a push then concerns one node, not all of them. */
function published(source: string, sharded: boolean): string {
  return sharded ? source.replaceAll("'PUBLISH'", "'SPUBLISH'") : source
}

const plain = new Map<string, Script>()

/** @param sharded for a node of a cluster. */
export function plainScript(name: PlainScript, sharded = false): Script {
  const which = sharded ? `${name} sharded` : name
  let script = plain.get(which)
  if (!script) {
    script = toScript(published(scriptPart(name), sharded))
    plain.set(which, script)
  }
  return script
}
