/** Options of the Messenger transport, checked at construction. */
import { readPageOptions, type PageOptions, type PageSettings } from '@botmesh/meta/page'
import { MESSENGER } from './platform.js'

/** `accessToken`: the page's token with `pages_messaging`. */
export interface MessengerOptions extends PageOptions {
  /** The Facebook page's id: events for other pages of the same app are ignored. */
  pageId: string
}

/** @throws ConfigError that names the option; never with a secret's value. */
export function readOptions(options: MessengerOptions): PageSettings {
  return readPageOptions(options, {
    owner: 'MessengerProvider',
    platform: MESSENGER,
    idOption: 'pageId',
    idMeaning: "the Facebook page's id",
  })
}
