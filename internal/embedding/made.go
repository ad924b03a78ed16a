package embedding

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"koine/internal/sealed"
	"koine/internal/vectorindex"
	"koine/kg"
)

// Directory returns the directory of the made vectors in a data directory.
func Directory(data string) string { return filepath.Join(data, directoryName) }

// directoryName is its name. vectorsDirectory and spentFile are the names in it.
const (
	directoryName    = "embeddings"
	vectorsDirectory = "vectors"
	spentFile        = "spent"
)

// state is saved with the made vectors.
type state struct {
	Model  string `json:"model"`
	Graphs string `json:"graphs"`
	// Position is the place up to which all texts have vectors; "" while those that were
	// there at the first start have not.
	Position string `json:"position"`
}

// AttachMade attaches the vectors that are saved in a data directory to a backup. Vectors that
// cannot be opened are left out: they can be made again.
func AttachMade(data string, log *slog.Logger, attach kg.AttachFile) (err error) {
	files, unusable := vectorindex.OpenFiles(filepath.Join(Directory(data), vectorsDirectory))
	if unusable != nil {
		log.Warn("made vectors are not usable; the backup does not contain them", "error", unusable)
		return nil
	}
	for _, f := range files {
		if err == nil {
			err = attach(path.Join(directoryName, vectorsDirectory, filepath.Base(f.Name())), f)
		}
		err = errors.Join(err, f.Close())
	}
	return err
}

// keyOf returns the key of a text in a graph: two numbers of its hash. The graph is part of it,
// so that nobody learns from a vector that the text is in another graph too.
func keyOf(graph kg.Term, text string) vectorindex.Key {
	name := graph.Value()
	h := sha256.New()
	_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(name))))
	_, _ = h.Write([]byte(name))
	_, _ = h.Write([]byte(text))
	sum := h.Sum(nil)
	return vectorindex.Key{Subject: vectorindex.Subject{Order: binary.BigEndian.Uint64(sum)}, Owner: binary.BigEndian.Uint64(sum[8:])}
}

// budget counts the texts that were sent today. What is counted is on disk before the texts are
// sent.
type budget struct {
	path  string
	daily int
	clock func() time.Time

	mu    sync.Mutex
	spent spent
}

// spent is how many texts were sent on a day, in UTC.
type spent struct {
	Day   string `json:"day"`
	Texts int    `json:"texts"`
}

// openBudget reads the file of a budget. One that is damaged counts as a day with a spent budget.
func openBudget(path string, daily int, clock func() time.Time) (*budget, error) {
	b := &budget{path: path, daily: daily, clock: clock}
	image, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return b, nil
	} else if err != nil {
		return nil, err
	}
	content, err := sealed.Open(image)
	if err == nil {
		err = json.Unmarshal(content, &b.spent)
	}
	if err != nil {
		b.spent = spent{b.today(), daily}
	}
	return b, nil
}

func (b *budget) today() string { return dayOf(b.clock()) }

func dayOf(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// reserveTexts returns how many of n texts may be sent now, and notes them as sent. If none may, wait
// is the time until the next day.
func (b *budget) reserveTexts(n int) (granted int, wait time.Duration, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock() // once: midnight may be between two readings
	next := b.spent
	if today := dayOf(now); next.Day != today {
		next = spent{Day: today}
	}
	n = max(min(n, b.daily-next.Texts), 0)
	if n == 0 {
		return 0, untilTomorrow(now), nil
	}
	next.Texts += n
	content, err := json.Marshal(next)
	if err != nil {
		return 0, 0, err
	}
	if err := sealed.WriteFile(b.path, sealed.Seal(content)); err != nil {
		return 0, 0, err
	}
	b.spent = next
	return n, 0, nil
}

// returnTexts notes that texts were not sent after all.
func (b *budget) returnTexts(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent.Texts = max(b.spent.Texts-n, 0) // written with the next batch
}

// sentToday returns how many texts were sent today.
func (b *budget) sentToday() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spent.Day != b.today() {
		return 0
	}
	return b.spent.Texts
}

// untilTomorrow returns the time until the next day in UTC.
func untilTomorrow(now time.Time) time.Duration {
	now = now.UTC()
	return now.Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now)
}
