package embedding

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"koine/internal/backoff"
	"koine/kg"
)

// CallTimeout bounds one call of the endpoint.
const CallTimeout = time.Minute

// maxNumberBytes is about the most that a number takes in an answer, maxEnvelopeBytes the rest of
// an answer beside numbers.
const (
	maxNumberBytes   = 32
	maxEnvelopeBytes = 64 << 10
)

// Endpoint is an OpenAI-compatible endpoint for embeddings.
type Endpoint struct {
	URL   string // such as https://api.openai.com/v1/embeddings
	Model string
	Key   string // sent as a bearer token; "" for none
}

// Check returns an error if the endpoint cannot be called.
func (e *Endpoint) Check() error {
	u, err := url.Parse(e.URL)
	switch {
	case err != nil: // the error has the URL, which may have a password
		return kg.Errorf(kg.CodeInvalid, "the URL of the embeddings endpoint is not valid")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return kg.Errorf(kg.CodeInvalid, "the URL of the embeddings endpoint must be http or https, with a host")
	case u.User != nil:
		return kg.Errorf(kg.CodeInvalid, "the URL of the embeddings endpoint has credentials; give the key in a file")
	}
	return (&kg.Embedding{Model: e.Model, Vector: []float32{1}}).Valid()
}

// callError is the failure of a call. Its text has nothing of the answer, which may repeat the
// key.
type callError struct {
	message string
	refused bool          // these texts: sending them again is no use
	unsent  bool          // nothing was sent
	failed  bool          // the endpoint failed, maybe at one of these texts
	after   time.Duration // before which the endpoint wants no further call
}

func (e *callError) Error() string { return "embeddings endpoint: " + e.message }

// client calls endpoints. Redirects are not followed: the key is for one host.
var client = &http.Client{
	Timeout:       CallTimeout,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Embed returns the vectors of texts, in their order. All have the same dimension.
func (e *Endpoint) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	body, err := json.Marshal(struct {
		Model  string   `json:"model"`
		Input  []string `json:"input"`
		Format string   `json:"encoding_format"`
	}{e.Model, texts, "float"})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, bytes.NewReader(body))
	if err != nil {
		return nil, &callError{message: "its URL is not valid"}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	if e.Key != "" {
		r.Header.Set("Authorization", "Bearer "+e.Key)
	}
	answer, err := client.Do(r)
	if err != nil {
		if u := (*url.Error)(nil); errors.As(err, &u) {
			err = u.Err // without the URL
		}
		dial := (*net.OpError)(nil)
		unsent := errors.As(err, &dial) && dial.Op == "dial"
		return nil, &callError{message: err.Error(), unsent: unsent, failed: !unsent}
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, &callError{
			message: fmt.Sprintf("status %d", answer.StatusCode), after: backoff.Hint(answer.Header),
			failed:  answer.StatusCode >= http.StatusInternalServerError,
			refused: answer.StatusCode == http.StatusBadRequest || answer.StatusCode == http.StatusRequestEntityTooLarge || answer.StatusCode == http.StatusUnprocessableEntity,
		}
	}
	most := maxEnvelopeBytes + int64(len(texts))*kg.MaxEmbeddingNumbers*maxNumberBytes
	content, err := io.ReadAll(io.LimitReader(answer.Body, most+1))
	switch {
	case err != nil:
		return nil, &callError{message: "reading the answer: " + err.Error(), failed: true}
	case int64(len(content)) > most:
		return nil, &callError{message: fmt.Sprintf("the answer has more than %d bytes", most), failed: true}
	}
	return e.readAnswer(content, len(texts))
}

// readAnswer returns the n vectors of an answer.
func (e *Endpoint) readAnswer(content []byte, n int) ([][]float32, error) {
	var answer struct {
		Data []struct {
			Index     *int      `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := json.Unmarshal(content, &answer); err != nil {
		return nil, &callError{message: "the answer is not that of an embeddings endpoint: data[].embedding must have numbers of 32 bits", failed: true}
	}
	if len(answer.Data) != n {
		return nil, &callError{message: fmt.Sprintf("the answer has %d vectors for %d texts", len(answer.Data), n), failed: true}
	}
	out := make([][]float32, n)
	for i, d := range answer.Data {
		if d.Index != nil {
			i = *d.Index
		}
		if i < 0 || i >= n || out[i] != nil {
			return nil, &callError{message: fmt.Sprintf("the answer has the index %d twice, or beyond its %d vectors", i, n), failed: true}
		}
		if err := (&kg.Embedding{Model: e.Model, Vector: d.Embedding}).Valid(); err != nil {
			return nil, &callError{message: "the answer: " + kg.AsError(err).Message, failed: true}
		}
		if out[i] = d.Embedding; len(d.Embedding) != len(answer.Data[0].Embedding) {
			return nil, &callError{message: "the vectors of the answer have several dimensions", failed: true}
		}
	}
	return out, nil
}
