package document

import "strings"

// Nearest returns the known word that a misspelt one most likely means, or "".
func Nearest(word string, known []string) string {
	if len(word) > 64 {
		return ""
	}
	w := fold(word)
	best, bestDistance := "", 1+max(1, len(w)/3)
	for _, k := range known {
		if d := distance(w, fold(k)); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	for _, k := range known {
		if best == "" && len(w) >= 3 && (strings.Contains(fold(k), w) || strings.Contains(w, fold(k))) {
			best = k
		}
	}
	return best
}

// fold drops what people get wrong first: case and the way words are joined.
func fold(s string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(s))
}

// distance counts the single-byte changes, including swaps of neighbours,
// that turn a into b.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
