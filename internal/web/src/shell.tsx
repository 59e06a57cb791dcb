import { useEffect, useRef, useState } from 'preact/hooks'
import type * as api from './api'
import { Trouble } from './dialog'
import type { End } from './exec'
import { Ranks, useRank } from './ranks'
import type Screen from './terminal'

// InJob is a shell in a rank of a job that runs. It is begun by a button and not by
// an address, so that no link enters a job.
export function InJob(props: { job: api.JobDetail }) {
  const { job } = props
  const { rank } = useRank(job)
  const path = `/v1/jobs/${encodeURIComponent(job.id)}/exec?rank=${rank}`
  const [turn, again] = useState(0)
  const [state, set] = useState<'none' | 'opens' | 'open' | 'over'>('none')
  const [end, ended] = useState<End>()
  const [failed, fail] = useState<unknown>()
  const Screen = useScreen(turn > 0)
  const button = useRef<HTMLButtonElement>(null)
  useEffect(() => (again(0), set('none')), [path])
  const open = () => {
    ended(undefined)
    fail(undefined)
    set('opens')
    again(turn + 1)
  }
  const runs = job.state === 'RUNNING'
  const live = state === 'opens' || state === 'open'
  return (
    <>
      <div class="bar">
        {!live && <Ranks job={job} now />}
        <button type="button" ref={button} disabled={!live && !runs} onClick={live ? () => (again(0), set('none')) : open}>
          {live ? 'End the shell' : turn > 0 ? 'Open another shell' : 'Open a shell'}
        </button>
        <p class="quiet" role="status">
          {state === 'none' && (runs ? 'A shell in the job’s container, beside its program. It ends when you leave this page.' : 'A job can be entered only while it runs.')}
          {state === 'opens' && 'opens …'}
          {state === 'open' && 'Ctrl+F6 gives the keys back to the page.'}
          {state === 'over' && end?.code !== undefined && `The shell has ended with exit code ${end.code}.`}
          {state === 'over' && end?.why}
        </p>
      </div>
      <Trouble of={failed} />
      {turn > 0 && !failed && Screen && (
        <Screen
          key={turn}
          path={path}
          begun={() => set('open')}
          end={(e) => (ended(e), set('over'))}
          refused={(e) => (fail(e), set('over'))}
          leave={() => button.current?.focus()}
        />
      )}
    </>
  )
}

// useScreen loads the terminal when one is opened: it is larger than the page.
function useScreen(wanted: boolean) {
  const [made, set] = useState<{ Screen: typeof Screen }>()
  useEffect(() => {
    if (wanted) void import('./terminal').then((m) => set({ Screen: m.default }))
  }, [wanted])
  return made?.Screen
}
