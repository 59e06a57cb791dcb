import { useState } from 'preact/hooks'
import type * as api from './api'
import { useRead } from './ask'
import { Audit } from './audit'
import { Controllers } from './controllers'
import { Trouble } from './dialog'
import { Health } from './health'
import { change } from './http'
import { Reservations } from './reservations'
import { setQuery, usePlace } from './route'
import { who } from './session'
import { useValue } from './value'
import { WhatIf } from './whatif'

const tabs = { reservations: Reservations, rules: Rules, audit: Audit, health: Health, controllers: Controllers }

// Operate is what operators do beside what stands at jobs and nodes.
export function Operate() {
  const asked = usePlace().query.get('tab') ?? ''
  const tab = (asked in tabs ? asked : 'reservations') as keyof typeof tabs
  const Tab = tabs[tab]
  return (
    <>
      <h1>Operate</h1>
      <div class="tabs" role="tablist">
        {Object.keys(tabs).map((t) => (
          <button key={t} type="button" role="tab" aria-selected={t === tab} onClick={() => setQuery({ tab: t })}>
            {t}
          </button>
        ))}
      </div>
      <section role="tabpanel" aria-label={tab}>
        <Tab />
      </section>
    </>
  )
}

// Rules are the rules in force, and what the file would change of them.
function Rules() {
  const { answer, failed, load } = useRead<api.Policy>('/v1/policy')
  const [checked, tell] = useState<api.Policy>()
  const [refused, refuse] = useState<unknown>()
  const admin = useValue(who)?.role === 'admin'
  const ask = async (what: string) => {
    refuse(undefined)
    tell(undefined)
    try {
      tell(await change<api.Policy>('POST', '/v1/policy/' + what))
      load()
    } catch (e) {
      refuse(e)
    }
  }
  const changes = checked?.changes ?? []
  return (
    <>
      {admin && (
        <div class="bar">
          <button type="button" onClick={() => ask('check')}>
            What would a reload change?
          </button>
          <button type="button" onClick={() => ask('reload')}>
            Reload the rules from the file
          </button>
        </div>
      )}
      <Trouble of={failed ?? refused} />
      {checked && (
        <div class="reason" role="status">
          {changes.length === 0 ? <p>The file says what is in force.</p> : <pre class="changes">{changes.join('\n')}</pre>}
          {(checked.warnings ?? []).map((w) => (
            <p key={w}>{w}</p>
          ))}
        </div>
      )}
      <WhatIf />
      <pre class="document" tabIndex={0} aria-label="Rules in force">
        {answer?.text}
      </pre>
    </>
  )
}
