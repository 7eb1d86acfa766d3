/** A connection to WhatsApp Web whose session (Z9) is in each store that other processes share. */
import { describe } from '@jest/globals'
import { sessionSuite } from '../../support/whatsapp-session/session.suite.js'
import { places } from './places.js'

for (const place of places) {
  describe(place.name, () => {
    sessionSuite(place, 90_000)
  })
}
