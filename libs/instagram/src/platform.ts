/** Instagram's direct messages, as data: in what they differ from the other messengers on the Graph API. */
import { MIB, type PagePlatform } from '@botmesh/meta/page'

export const INSTAGRAM: PagePlatform = {
  kind: 'instagram',
  name: 'Instagram',
  object: 'instagram',
  receives: ['text', 'media', 'button replies', 'reactions', 'quotes', 'edits'],
  graphUrl: 'https://graph.instagram.com',
  text: { most: 1000, unit: 'bytes' },
  quickRepliesOnMedia: false,
  uploads: { image: 8 * MIB, audio: 25 * MIB, video: 25 * MIB, document: 25 * MIB, sticker: 8 * MIB },
  uploadFields: { platform: 'instagram' },
}
