import { useEffect, useRef, useState } from 'preact/hooks'
import type * as api from './api'
import { Trouble } from './dialog'
import type { End } from './exec'
import { Ranks, useRank } from './ranks'
import type Screen from './terminal'

// Way is how a running job is entered: by a shell beside its program, or by the
// terminal of that program itself, which several may have and nobody ends by leaving.
interface Way {
  stream: 'exec' | 'attach'
  open: string
  again: string
  leave: string
  begun: string
  over: string
}

const shell: Way = {
  stream: 'exec', open: 'Open a shell', again: 'Open another shell', leave: 'End the shell',
  begun: 'Ctrl+F6 gives the keys back to the page.',
  over: 'The shell has ended with exit code',
}

const own: Way = {
  stream: 'attach', open: 'Attach to its terminal', again: 'Attach again', leave: 'Detach',
  begun: 'Ctrl+F6 gives the keys back to the page. The program goes on when you leave; Ctrl+C is for it.',
  over: 'The job’s program has ended with exit code',
}

// InJob is a terminal in a rank of a job that runs. It is begun by a button and not
// by an address, so that no link enters a job.
export function InJob(props: { job: api.JobDetail }) {
  const { job } = props
  const { rank } = useRank(job)
  const [way, choose] = useState(shell)
  const path = `/v1/jobs/${encodeURIComponent(job.id)}/${way.stream}?rank=${rank}`
  const [turn, again] = useState(0)
  const [state, set] = useState<'none' | 'opens' | 'open' | 'over'>('none')
  const [end, ended] = useState<End>()
  const [failed, fail] = useState<unknown>()
  const Screen = useScreen(turn > 0)
  const button = useRef<HTMLButtonElement>(null)
  useEffect(() => (again(0), set('none')), [job.id, rank])
  const open = (by: Way) => {
    choose(by)
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
        {ways(job).map(
          (w) =>
            (!live || w === way) && (
              <button key={w.stream} type="button" ref={w === way ? button : undefined} disabled={!live && !runs} onClick={live ? () => (again(0), set('none')) : () => open(w)}>
                {live ? w.leave : turn > 0 && w === way ? w.again : w.open}
              </button>
            ),
        )}
        <p class="quiet" role="status">
          {state === 'none' && (runs ? 'A shell in the job’s container, beside its program. It ends when you leave this page.' : 'A job can be entered only while it runs.')}
          {state === 'opens' && 'opens …'}
          {state === 'open' && way.begun}
          {state === 'over' && end?.code !== undefined && `${way.over} ${end.code}.`}
          {state === 'over' && end?.why}
        </p>
      </div>
      <Trouble of={failed} />
      {turn > 0 && !failed && Screen && (
        <Screen
          key={turn}
          path={path}
          own={way === own}
          begun={() => set('open')}
          end={(e) => (ended(e), set('over'))}
          refused={(e) => (fail(e), set('over'))}
          leave={() => button.current?.focus()}
        />
      )}
    </>
  )
}

// ways are how a job can be entered: a terminal of its own it has only where it asked for one.
const ways = (job: api.JobDetail): Way[] => (job.spec?.gbatch?.terminal ? [own, shell] : [shell])

// useScreen loads the terminal when one is opened: it is larger than the page.
function useScreen(wanted: boolean) {
  const [made, set] = useState<{ Screen: typeof Screen }>()
  useEffect(() => {
    if (wanted) void import('./terminal').then((m) => set({ Screen: m.default }))
  }, [wanted])
  return made?.Screen
}
