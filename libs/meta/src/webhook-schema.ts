/**
 * The parts of the Cloud API's webhook bodies that are read, checked at the edge. Optional parts that are malformed
 * count as absent; all else is left out, so that new fields of the platform do no harm. Each reader gives undefined for
 * what is malformed.
 */
import { quickReader } from '@botmesh/core'
import { z } from 'zod'

const text = z.string()
const optional = z.string().optional().catch(undefined)
const anyList = z.array(z.unknown()).optional().catch(undefined)

const envelopeSchema = z.object({
  object: text,
  entry: z.array(z.object({ changes: z.array(z.object({ field: text, value: z.unknown() })) })),
})

const errorSchema = z.object({
  code: z.number(),
  title: optional,
  error_data: z.object({ details: optional }).optional().catch(undefined),
})

const valueSchema = z.object({
  metadata: z.object({ phone_number_id: text, display_phone_number: optional }),
  contacts: z
    .array(z.object({ wa_id: optional, user_id: optional, profile: z.object({ name: optional }).optional() }))
    .optional()
    .catch(undefined),
  messages: anyList,
  statuses: anyList,
  errors: anyList,
})

const headSchema = z.object({
  id: text.min(1),
  from: text.min(1).optional(),
  from_user_id: text.min(1).optional(),
  timestamp: z.union([text, z.number()]).optional().catch(undefined),
  type: text,
  group_id: optional,
  context: z.object({ id: optional }).optional().catch(undefined),
})

const statusSchema = z.object({
  id: text,
  status: text,
  recipient_id: optional,
  recipient_user_id: optional,
  timestamp: z.union([text, z.number()]).optional().catch(undefined),
  biz_opaque_callback_data: optional,
  errors: z.array(errorSchema).optional().catch(undefined),
})

export const readEnvelope = quickReader(envelopeSchema)
export const readValue = quickReader(valueSchema)
export const readHead = quickReader(headSchema)
export const readStatus = quickReader(statusSchema)
export const readError = quickReader(errorSchema)

const mediaSchema = z.object({
  id: text,
  mime_type: optional,
  caption: optional,
  filename: optional,
  file_size: z.number().optional().catch(undefined),
})
const choiceSchema = z.object({ id: text, title: text })
const orderSchema = z.object({
  text: optional,
  product_items: z.array(
    z.object({
      product_retailer_id: text,
      quantity: z.union([text, z.number()]),
      item_price: z.union([text, z.number()]).optional(),
      currency: optional,
    }),
  ),
})
/** What the kinds of messages that are no media have in a field of their own. */
export const readBody = {
  text: quickReader(z.object({ text: z.object({ body: text }) })),
  button: quickReader(z.object({ button: z.object({ text, payload: optional }) })),
  interactive: quickReader(
    z.object({
      interactive: z.object({
        button_reply: choiceSchema.optional(),
        list_reply: choiceSchema.optional(),
        nfm_reply: z.object({ body: optional, response_json: optional }).optional(),
      }),
    }),
  ),
  location: quickReader(
    z.object({
      location: z.object({ latitude: z.number(), longitude: z.number(), name: optional, address: optional }),
    }),
  ),
  contacts: quickReader(
    z.object({
      contacts: z.array(
        z.object({
          name: z.object({ formatted_name: optional }).optional().catch(undefined),
          phones: z
            .array(z.object({ phone: optional }))
            .optional()
            .catch(undefined),
        }),
      ),
    }),
  ),
  order: quickReader(z.object({ order: orderSchema })),
  reaction: quickReader(z.object({ reaction: z.object({ message_id: text, emoji: optional }) })),
}
export const readMedia = quickReader(mediaSchema)

export type ParsedOrder = z.infer<typeof orderSchema>
