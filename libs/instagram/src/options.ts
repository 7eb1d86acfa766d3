/** Options of the Instagram transport, checked at construction. */
import { readPageOptions, type PageOptions, type PageSettings } from '@botmesh/meta/page'
import { INSTAGRAM } from './platform.js'

/** `accessToken`: the account's own token (`instagram_business_manage_messages`), or that of the page it is linked to. */
export interface InstagramOptions extends PageOptions {
  /** The id of the Instagram professional account: events for other accounts of the same app are ignored. */
  accountId: string
}

/** @throws ConfigError that names the option; never with a secret's value. */
export function readOptions(options: InstagramOptions): PageSettings {
  return readPageOptions(options, {
    owner: 'InstagramProvider',
    platform: INSTAGRAM,
    idOption: 'accountId',
    idMeaning: 'the id of the Instagram professional account',
  })
}
