/** Messenger's webhook bodies → neutral messages and receipts. Pure. */
import { inboundParser } from '@botmesh/meta/page'
import { MESSENGER } from './platform.js'

export const parseInbound = inboundParser(MESSENGER)
