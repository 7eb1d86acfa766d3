/** Neutral content → bodies of Messenger's `/me/messages`. Pure. */
import { outboundRenderer } from '@botmesh/meta/page'
import { MESSENGER } from './platform.js'

export const renderOutbound = outboundRenderer(MESSENGER)
