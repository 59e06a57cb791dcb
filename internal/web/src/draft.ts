const place = 'gbatch.draft'

// kept is what a user has typed of a job, which outlives a page that is closed by
// mistake; nothing: none, or it was somebody else.
export function kept(user: string): string | undefined {
  const all = sessionStorage.getItem(place) ?? ''
  return all.startsWith(user + '\n') ? all.slice(user.length + 1) : undefined
}

// keep keeps it, of the last user of this tab alone.
export const keep = (user: string, text: string): void => sessionStorage.setItem(place, user + '\n' + text)

export const forget = (): void => sessionStorage.removeItem(place)
