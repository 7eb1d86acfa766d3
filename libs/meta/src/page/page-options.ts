/** Options of the transports for Messenger and Instagram, checked at construction. */
import { checkedFor, refuseUnknownOptions, requireOneOf, requireText } from '@botmesh/core'
import {
  GRAPH_OPTIONS,
  readGraphOptions,
  refuseNoFunction,
  type CommonSettings,
  type GraphOptions,
} from '../graph-options.js'
import type { PageReceipt } from './page-inbound.js'
import type { PagePlatform } from './platform.js'

export interface PageOptions extends GraphOptions {
  /** A text that is too long for one message: `'split'` into several (default), or `'refuse'`. */
  longText?: 'split' | 'refuse'
  /** Corrections of a message: `'ignore'` (default), or `'deliver'` them as messages with `editOf`. */
  edits?: 'ignore' | 'deliver'
  /** What became of messages sent earlier: delivered, read. Not waited for; a failure is reported. */
  onReceipt?: (receipt: PageReceipt) => unknown
}

export interface PageSettings extends CommonSettings {
  platform: PagePlatform
  accountId: string
  longText: 'split' | 'refuse'
  edits: 'ignore' | 'deliver'
  onReceipt: PageOptions['onReceipt']
}

/** Which transport's options they are. */
export interface PageOwner {
  /** The provider's class, for errors. */
  owner: string
  platform: PagePlatform
  /** The option that holds the account's id, and what that is. */
  idOption: string
  idMeaning: string
}

/** @throws ConfigError that names the option; never with a secret's value. */
export function readPageOptions(options: PageOptions, from: PageOwner): PageSettings {
  return checkedFor(from.owner, () => read(options, from))
}

function read(options: PageOptions, from: PageOwner): PageSettings {
  const { owner, platform, idOption, idMeaning } = from
  refuseUnknownOptions(owner, options, [idOption, 'longText', 'edits', 'onReceipt', ...GRAPH_OPTIONS])
  const accountId = requireText(
    idOption,
    (options as unknown as Record<string, unknown>)[idOption],
    `${idMeaning} (is the environment variable set?)`,
  )
  refuseNoFunction('onReceipt', options.onReceipt)
  return {
    ...readGraphOptions(options, { kind: platform.kind, accountId, graphUrl: platform.graphUrl }),
    platform,
    accountId,
    longText: requireOneOf('longText', options.longText ?? 'split', ['split', 'refuse']),
    edits: requireOneOf('edits', options.edits ?? 'ignore', ['ignore', 'deliver']),
    onReceipt: options.onReceipt,
  }
}
