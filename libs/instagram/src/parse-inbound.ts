/** Instagram's webhook bodies → neutral messages and receipts. Pure. */
import { inboundParser } from '@botmesh/meta/page'
import { INSTAGRAM } from './platform.js'

export const parseInbound = inboundParser(INSTAGRAM)
