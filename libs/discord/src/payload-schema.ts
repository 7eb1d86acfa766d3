/**
 * The parts of Discord's events that are read, checked at the edge. Optional parts that are malformed count as
 * absent; all else is left out, so that new fields of the platform do no harm.
 */
import { listOf, quickReader } from '@botmesh/core'
import { z } from 'zod'

const optionalText = z.string().optional().catch(undefined)
const optionalNumber = z.number().optional().catch(undefined)
const optionalFlag = z.boolean().optional().catch(undefined)
/** Discord writes null where others leave a field out. */
const nullableText = z.string().nullish().catch(undefined)
/** Where nesting ends. */
const nothing = z.undefined().optional().catch(undefined)

const snowflake = z.string().regex(/^\d{1,21}$/)

const userSchema = z.object({
  id: snowflake,
  username: optionalText,
  global_name: nullableText,
  bot: optionalFlag,
})
const memberSchema = z.object({ nick: nullableText, user: userSchema.optional().catch(undefined) })
const optionalMember = memberSchema.nullish().catch(undefined)

const attachmentSchema = z.object({
  id: snowflake,
  filename: optionalText,
  content_type: nullableText,
  size: optionalNumber,
  url: optionalText,
})
const stickerSchema = z.object({ id: snowflake, name: optionalText })

/** Buttons, selects, and the rows and boxes that they stand in, to any depth. */
export interface ParsedComponent {
  type: number
  custom_id?: string | undefined
  label?: string | undefined
  options?: { label: string; value: string }[] | undefined
  components?: ParsedComponent[] | undefined
}
const DEEPEST_COMPONENT = 5
function componentSchema(depth: number): z.ZodType<ParsedComponent> {
  return z.object({
    type: z.number(),
    custom_id: optionalText,
    label: optionalText,
    options: listOf(z.object({ label: z.string(), value: z.string() })),
    components: depth === 0 ? nothing : listOf(componentSchema(depth - 1)),
  })
}
const components = listOf(componentSchema(DEEPEST_COMPONENT))

const messageSchema = z.object({
  id: snowflake,
  channel_id: snowflake,
  guild_id: snowflake.optional().catch(undefined),
  author: userSchema,
  member: optionalMember,
  webhook_id: optionalText,
  type: z.number(),
  content: optionalText,
  timestamp: z.string(),
  mentions: listOf(userSchema.extend({ member: optionalMember })),
  attachments: listOf(attachmentSchema),
  sticker_items: listOf(stickerSchema),
  components,
  message_reference: z.object({ message_id: optionalText, type: optionalNumber }).nullish().catch(undefined),
  referenced_message: z
    .object({ author: userSchema.optional().catch(undefined) })
    .nullish()
    .catch(undefined),
  poll: z
    .object({ question: z.object({ text: z.string() }) })
    .nullish()
    .catch(undefined),
})

/** An option of a slash command: a value, or a group with options of its own. */
export interface ParsedOption {
  name: string
  type: number
  value?: string | number | boolean | undefined
  options?: ParsedOption[] | undefined
}
function optionSchema(depth: number): z.ZodType<ParsedOption> {
  return z.object({
    name: z.string(),
    type: z.number(),
    value: z.union([z.string(), z.number(), z.boolean()]).optional().catch(undefined),
    options: depth === 0 ? nothing : listOf(optionSchema(depth - 1)),
  })
}

const interactionSchema = z.object({
  id: snowflake,
  application_id: snowflake,
  type: z.number(),
  token: z.string().min(1),
  guild_id: snowflake.optional().catch(undefined),
  channel_id: snowflake.optional().catch(undefined),
  channel: z.object({ id: snowflake, type: z.number() }).optional().catch(undefined),
  member: optionalMember,
  user: userSchema.optional().catch(undefined),
  locale: optionalText,
  message: z.object({ id: snowflake, components }).optional().catch(undefined),
  data: z
    .object({
      name: optionalText,
      options: listOf(optionSchema(2)),
      custom_id: optionalText,
      values: listOf(z.string()),
      target_id: optionalText,
      resolved: z
        .object({
          attachments: z.record(z.string(), attachmentSchema).optional().catch(undefined),
        })
        .optional()
        .catch(undefined),
    })
    .optional()
    .catch(undefined),
})

/** Each gives undefined for a malformed one. */
export const readMessage = quickReader(messageSchema)
export const readInteraction = quickReader(interactionSchema)

export type ParsedUser = z.infer<typeof userSchema>
export type ParsedMember = z.infer<typeof optionalMember>
export type ParsedMessage = z.infer<typeof messageSchema>
export type ParsedInteraction = z.infer<typeof interactionSchema>
export type ParsedAttachment = z.infer<typeof attachmentSchema>
