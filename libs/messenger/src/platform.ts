/** Messenger, as data: in what it differs from the other messengers on the Graph API. */
import { MIB, type PagePlatform } from '@botmesh/meta/page'

export const MESSENGER: PagePlatform = {
  kind: 'messenger',
  name: 'Messenger',
  object: 'page',
  receives: ['text', 'media', 'button replies', 'reactions', 'quotes', 'edits', 'locations'],
  graphUrl: 'https://graph.facebook.com',
  text: { most: 2000, unit: 'characters' },
  quickRepliesOnMedia: true,
  uploads: { image: 25 * MIB, audio: 25 * MIB, video: 25 * MIB, document: 25 * MIB, sticker: 25 * MIB },
  uploadFields: {},
}
