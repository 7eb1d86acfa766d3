/**
 * Names in Redis: `<prefix>:{<tag>}:…`, everything of one shard under one hash tag. The prefix is escaped, so that
 * `shop` never meets `shop:eu` (C4); what scripts join by spaces, bars and line breaks is escaped too.
 */
import { slotOf } from './cluster-slots.js'

/** Hash tag of the only shard of the default layout. The mesh's record is there whatever the layout (Z11). */
export const MESH_TAG = '0'

const UNSAFE = /[\\ \t\n\v\f\r|]/
const UNSAFE_ALL = /[\\ \t\n\v\f\r|]/g
const ESCAPED = /\\([0-9a-f]{2})/g

/** A chat key, id, session or revision as scripts take it: without spaces, line breaks and bars. */
export function escapeName(name: string): string {
  if (!UNSAFE.test(name)) return name
  return name.replace(UNSAFE_ALL, (char) => `\\${char.charCodeAt(0).toString(16).padStart(2, '0')}`)
}

/** Undoes `escapeName`. */
export function unescapeName(name: string): string {
  if (!name.includes('\\')) return name
  return name.replace(ESCAPED, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
}

/** All of one shard's names begin with `base`. With the default layout there is one shard, and its tag is `0`. */
export class ShardKeys {
  /** Hash slot of all its names. */
  readonly slot: number
  readonly base: string
  /** The shard's main hash, and KEYS 1 of every script: it says which hash slot all others are in. */
  readonly holders: string
  /** The highest fence of a lock. */
  readonly lockFence: string

  constructor(prefix: string, tag = MESH_TAG) {
    this.slot = slotOf(tag)
    this.base = `${encodeURIComponent(prefix)}:{${tag}}:`
    this.holders = `${this.base}holders`
    this.lockFence = `${this.base}fence`
  }

  /** Channel that tells a session of its grants. */
  grantsOf(session: string): string {
    return `${this.base}g:${escapeName(session)}`
  }

  user(id: string): string {
    return `${this.base}u:${escapeName(id)}`
  }

  log(channel: string): string {
    return `${this.base}log:${escapeName(channel)}`
  }
}
