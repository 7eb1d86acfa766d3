/** Neutral content → bodies of Instagram's `/me/messages`. Pure. */
import { outboundRenderer } from '@botmesh/meta/page'
import { INSTAGRAM } from './platform.js'

export const renderOutbound = outboundRenderer(INSTAGRAM)
