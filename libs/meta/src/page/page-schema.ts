/**
 * The parts of Messenger's and Instagram's webhook bodies that are read, checked at the edge. Optional parts that are
 * malformed count as absent; all else is left out, so that new fields of the platform do no harm. Each reader gives
 * undefined for what is malformed.
 */
import { quickReader } from '@botmesh/core'
import { z } from 'zod'

const text = z.string()
const id = text.min(1)
const optional = z.string().optional().catch(undefined)
const moment = z.number().optional().catch(undefined)
const flag = z.boolean().optional().catch(undefined)
const anyList = z.array(z.unknown()).optional().catch(undefined)

const envelopeSchema = z.object({ object: text, entry: z.array(z.unknown()) })
const entrySchema = z.object({
  id,
  time: moment,
  messaging: anyList,
  standby: anyList,
  changes: z
    .array(z.object({ field: optional }))
    .optional()
    .catch(undefined),
})
const headSchema = z.object({ sender: z.object({ id }), timestamp: moment })

const messageSchema = z.object({
  mid: id,
  text: optional,
  is_echo: flag,
  is_deleted: flag,
  is_self: flag,
  quick_reply: z.object({ payload: text }).optional().catch(undefined),
  reply_to: z.object({ mid: optional }).optional().catch(undefined),
  attachments: anyList,
})
const postbackSchema = z.object({ mid: optional, title: optional, payload: optional })
const reactionSchema = z.object({ mid: id, action: optional, emoji: optional, reaction: optional })
const editSchema = z.object({ mid: id, text, num_edit: z.coerce.number() })
const deliverySchema = z.object({ mids: z.array(text).optional().catch(undefined), watermark: moment })
const readSchema = z.object({ mid: optional, watermark: moment })
const enforcementSchema = z.object({ action: text, reason: optional })

export const readEnvelope = quickReader(envelopeSchema)
export const readEntry = quickReader(entrySchema)
export const readHead = quickReader(headSchema)
export const readMessage = quickReader(messageSchema)
export const readPostback = quickReader(postbackSchema)
export const readReaction = quickReader(reactionSchema)
export const readDelivery = quickReader(deliverySchema)
export const readRead = quickReader(readSchema)
export const readEnforcement = quickReader(enforcementSchema)
/** Its number may come as text: zod alone can read it. */
export const readEdit = (value: unknown) => editSchema.safeParse(value).data

const place = z.object({ lat: z.number(), long: z.number() })
const attachmentSchema = z.object({
  type: z.string(),
  title: optional,
  url: optional,
  payload: z
    .object({
      url: optional,
      title: optional,
      attachment_id: optional,
      sticker_id: z.union([z.string(), z.number()]).optional().catch(undefined),
      coordinates: place.optional().catch(undefined),
    })
    .optional()
    .catch(undefined),
})
export const readAttachment = quickReader(attachmentSchema)

export type ParsedAttachment = z.infer<typeof attachmentSchema>
