/** Options of the WhatsApp Cloud API transport, checked at construction. */
import { checkedFor, refuseUnknownOptions, requireText } from '@botmesh/core'
import {
  GRAPH_OPTIONS,
  readGraphOptions,
  refuseNoFunction,
  type CommonSettings,
  type GraphOptions,
} from './graph-options.js'
import type { MetaStatus } from './parse-inbound.js'

/** `accessToken`: a system user's token with `whatsapp_business_messaging`. */
export interface MetaOptions extends GraphOptions {
  /** The number's id in the Graph API (not the number itself). */
  phoneNumberId: string
  /** What became of a message sent earlier: sent, delivered, read, failed. Not waited for; a failure is reported. */
  onStatus?: (status: MetaStatus) => unknown
}

export interface MetaSettings extends CommonSettings {
  phoneNumberId: string
  onStatus: MetaOptions['onStatus']
}

/** @throws ConfigError that names the option; never with a secret's value. */
export function readOptions(options: MetaOptions): MetaSettings {
  return checkedFor('MetaProvider', () => read(options))
}

function read(options: MetaOptions): MetaSettings {
  refuseUnknownOptions('MetaProvider', options, ['phoneNumberId', 'onStatus', ...GRAPH_OPTIONS])
  const phoneNumberId = requireText(
    'phoneNumberId',
    options.phoneNumberId,
    "the number's id in the Graph API (is the environment variable set?)",
  )
  refuseNoFunction('onStatus', options.onStatus)
  return {
    ...readGraphOptions(options, {
      kind: 'meta',
      accountId: phoneNumberId,
      graphUrl: 'https://graph.facebook.com',
    }),
    phoneNumberId,
    onStatus: options.onStatus,
  }
}
