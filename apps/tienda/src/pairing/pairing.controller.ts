/** `/pairing`: what pairs the shop with a phone, for who knows the password. Any replica answers. */
import { Controller, Get, Header, Headers, Query, UseGuards } from '@nestjs/common'
import type { Language } from '../texts.js'
import { PairingBoard } from './pairing-board.js'
import { PairingGuard } from './pairing.guard.js'
import { PANEL_SCRIPT, PANEL_STYLE, pageOf, panelOf, type Panel } from './pairing-page.js'
import { languageOfBrowser, pairingTexts } from './pairing-texts.js'

@Controller('pairing')
@UseGuards(PairingGuard)
export class PairingController {
  constructor(private readonly board: PairingBoard) {}

  @Get()
  @Header('content-type', 'text/html; charset=utf-8')
  async page(@Query('lang') lang?: string, @Headers('accept-language') accepted?: string): Promise<string> {
    const language = languageOf(lang, accepted)
    const texts = pairingTexts(language)
    return pageOf(language, texts, await panelOf(await this.board.current(), texts))
  }

  @Get('state')
  async state(@Query('lang') lang?: string, @Headers('accept-language') accepted?: string): Promise<Panel> {
    return panelOf(await this.board.current(), pairingTexts(languageOf(lang, accepted)))
  }

  @Get('panel.js')
  @Header('content-type', 'text/javascript; charset=utf-8')
  script(): string {
    return PANEL_SCRIPT
  }

  @Get('panel.css')
  @Header('content-type', 'text/css; charset=utf-8')
  style(): string {
    return PANEL_STYLE
  }
}

function languageOf(chosen: string | undefined, accepted: string | undefined): Language {
  return chosen === 'es' || chosen === 'en' ? chosen : languageOfBrowser(accepted)
}
