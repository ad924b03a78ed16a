package words

import "strings"

// The bounds of Detect.
const (
	maxDetectedWords = 60 // are looked at
	minFunctionWords = 2  // are needed
	functionShare    = 6  // one word of so many is a function word, or more
)

// functionWords are frequent words of languages, without accents: of those with a stemmer,
// and of others that look like them. A word of several languages counts for each.
var functionWords = makeFunctionWords(map[string]string{
	"en": "the of and to in is was that for it with as on are this be at by from or have not which you were their has its been will can more than when but they a an what how who why where there these those such into between also any some no do does did could should would may must about we he she his her our your my if so then them only other i me both each most",
	"de": "der die das und ist nicht ein eine einen zu den dem des mit von auf fur im sich als auch es an werden aus er hat dass sie nach wird bei einer um am sind noch wie nur oder aber",
	"fr": "le la les de des du et est un une en que qui dans pour pas sur au aux avec ce cette il elle sont par plus ne se ou leur mais ont nous vous etre son ses apres",
	"es": "el la los las de del y es un una en que por para con no se su al lo como mas pero sus fue este esta son entre cuando muy sin sobre ser tambien hasta desde todo",
	"it": "il lo la i gli le di del della dei e un una in che per con non si da su come piu ma anche sono nel alla delle dopo questo essere",
	"pt": "o a os as de do da dos das e um uma em que por para com nao se no na ao como mais mas seu sua foi sao pelo pela tambem depois",
	"nl": "de het een en van in is dat op te voor met niet zijn aan er ook als maar bij door om naar uit nog wordt dan deze meer over worden",
	"sv": "och i att det som en pa ar av for med till den har de inte om ett men sa var efter vid kan hade man",
	"da": "og i at det som en pa er af for med til den har de ikke om et men sa var efter ved kan havde man",
})

// Marks are the languages that a word is a function word of, one bit each.
type Marks uint16

// MarksOf returns the languages that a word is a function word of, as it is folded.
func MarksOf(folded string) Marks { return functionWords[folded] }

// functionLanguages are the languages of functionWords, in the order of their bits.
var functionLanguages = []string{"en", "de", "fr", "es", "it", "pt", "nl", "sv", "da"}

func makeFunctionWords(lists map[string]string) map[string]Marks {
	out := map[string]Marks{}
	for bit, tag := range functionLanguages {
		for word := range strings.FieldsSeq(lists[tag]) {
			out[word] |= 1 << bit
		}
	}
	return out
}

// Detect returns the language of a text without a tag, by its function words ("the", "und",
// "que"): the language that has most of them, clearly more than any other. It returns false
// for a text that has too few, such as a name or a heading, and Other for a language that it
// knows and that has no stemmer.
func Detect(text string) (Language, bool) {
	var d Detector
	for w := range Split(text) {
		if !d.AddWord(MarksOf(w.Folded)) {
			break
		}
	}
	return d.Language()
}

// Detector detects a language as Detect does, from the marks of words in their order.
type Detector struct {
	counts [16]int
	all    int
}

// AddWord adds the next word. It returns false when enough words are known.
func (d *Detector) AddWord(of Marks) bool {
	if d.all++; d.all > maxDetectedWords {
		return false
	}
	for bit := 0; of != 0; bit, of = bit+1, of>>1 {
		d.counts[bit] += int(of & 1)
	}
	return true
}

// Language returns the language of the words, as Detect does.
func (d *Detector) Language() (Language, bool) {
	best, second := 0, -1
	for bit := 1; bit < len(functionLanguages); bit++ {
		switch {
		case d.counts[bit] > d.counts[best]:
			best, second = bit, best
		case second < 0 || d.counts[bit] > d.counts[second]:
			second = bit
		}
	}
	if n := d.counts[best]; n < minFunctionWords || functionShare*n < min(d.all, maxDetectedWords) || 4*d.counts[second] >= 3*n {
		return Other, false
	}
	return stemmed[best], true
}

// stemmed are the languages of functionLanguages.
var stemmed = func() (out []Language) {
	for _, tag := range functionLanguages {
		out = append(out, LanguageOf(tag))
	}
	return out
}()
