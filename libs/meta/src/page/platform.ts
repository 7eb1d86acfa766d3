/**
 * In what Messenger and Instagram differ, as data: their packages give one of these, all else is written once here.
 */
import type { InboundFeature, Media } from '@botmesh/core'
import type { UploadLimits } from '../media-upload.js'
import type { TextLimit } from '../text-limits.js'

export interface PagePlatform {
  /** First part of the provider's id. */
  kind: string
  /** For people. */
  name: string
  /** `object` of its webhook bodies. */
  object: string
  receives: readonly InboundFeature[]
  /** Where its API is, unless the options say otherwise. */
  graphUrl: string
  /** The longest text of one message. */
  text: TextLimit
  /** May quick replies hang on a picture or file as well as on a text? */
  quickRepliesOnMedia: boolean
  /** The largest files, in bytes. */
  uploads: UploadLimits
  /** Fields that its uploads need besides the file. */
  uploadFields: Readonly<Record<string, string>>
}

/** Limits that both have, in characters or pieces. */
export const LIMIT = {
  quickReplies: 13,
  buttons: 3,
  /** Of quick replies and buttons. */
  title: 20,
  payload: 1000,
  /** Above buttons. */
  buttonText: 640,
  /** Of a card: a picture over its title. */
  cardTitle: 80,
} as const

/** The platform's word for each kind of media. A sticker of ours is a picture there. */
export const ATTACHMENT_TYPES: Readonly<Record<Media['kind'], string>> = {
  image: 'image',
  audio: 'audio',
  video: 'video',
  document: 'file',
  sticker: 'image',
}
