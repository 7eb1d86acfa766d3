/** The rules that every transport keeps, checked on Instagram against the double. */
import { describe, expect, it } from '@jest/globals'
import { providerSuite } from '@botmesh/core/testing'
import { pageConformance } from '../../../test/support/page-transport/bed.js'
import { fixture } from './fixture.js'

providerSuite({ describe, it, expect }, pageConformance(fixture))
