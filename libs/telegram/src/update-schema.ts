/**
 * The parts of Telegram's updates that are read, checked at the edge. Optional parts that are malformed count as
 * absent; all else is left out, so that new fields of the platform do no harm.
 */
import { quickReader } from '@botmesh/core'
import { z } from 'zod'

const optionalText = z.string().optional().catch(undefined)
const optionalNumber = z.number().optional().catch(undefined)
const optionalFlag = z.boolean().optional().catch(undefined)

const userSchema = z.object({
  id: z.number(),
  is_bot: optionalFlag,
  first_name: optionalText,
  last_name: optionalText,
  language_code: optionalText,
})
const chatSchema = z.object({ id: z.number(), type: z.string() })
const fileSchema = z.object({
  file_id: z.string(),
  mime_type: optionalText,
  file_name: optionalText,
  file_size: optionalNumber,
})
const optionalFile = fileSchema.optional()
const keyboardSchema = z.object({
  inline_keyboard: z.array(z.array(z.object({ text: z.string(), callback_data: optionalText }))),
})
const messageSchema = z.object({
  message_id: z.number(),
  date: z.number(),
  edit_date: optionalNumber,
  chat: chatSchema,
  from: userSchema.optional(),
  sender_chat: z.object({ id: z.number() }).optional(),
  is_automatic_forward: optionalFlag,
  is_topic_message: optionalFlag,
  message_thread_id: optionalNumber,
  reply_to_message: z.object({ message_id: z.number() }).optional().catch(undefined),
  reply_markup: keyboardSchema.optional().catch(undefined),
  text: optionalText,
  caption: optionalText,
  entities: z
    .array(z.object({ type: z.string(), offset: z.number(), length: z.number() }))
    .optional()
    .catch(undefined),
  photo: z.array(fileSchema).optional(),
  video: optionalFile,
  animation: optionalFile,
  video_note: optionalFile,
  audio: optionalFile,
  voice: optionalFile,
  document: optionalFile,
  sticker: optionalFile,
  location: z.object({ latitude: z.number(), longitude: z.number() }).optional(),
  venue: z.object({ title: z.string(), address: z.string() }).optional(),
  contact: z
    .object({ phone_number: z.string(), first_name: optionalText, last_name: optionalText })
    .optional(),
  poll: z.object({ question: z.string() }).optional(),
  dice: z.object({ emoji: z.string(), value: z.number() }).optional(),
})
const callbackSchema = z.object({
  id: z.string(),
  from: userSchema,
  data: optionalText,
  message: z
    .object({
      message_id: z.number(),
      chat: chatSchema,
      is_topic_message: optionalFlag,
      message_thread_id: optionalNumber,
      reply_markup: keyboardSchema.optional().catch(undefined),
    })
    .optional(),
})
const reactionSchema = z.object({
  chat: chatSchema,
  message_id: z.number(),
  user: userSchema.optional(),
  date: z.number(),
  new_reaction: z.array(z.object({ emoji: optionalText })),
})

/** Each gives undefined for a malformed one. */
export const readMessage = quickReader(messageSchema)
export const readCallback = quickReader(callbackSchema)
export const readReaction = quickReader(reactionSchema)

export type ParsedMessage = z.infer<typeof messageSchema>
export type ParsedUser = z.infer<typeof userSchema>
export type ParsedChat = z.infer<typeof chatSchema>
export type ParsedFile = z.infer<typeof fileSchema>
export type ParsedKeyboard = z.infer<typeof keyboardSchema>
