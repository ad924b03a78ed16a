package rdf

import "strings"

// tellContexts tells of the terms in the outermost contexts of a JSON-LD document that
// can be prefixes (JSON-LD 1.1, section 4.1.5): a term that is an IRI which ends like a
// namespace, or one that says so with @prefix.
func tellContexts(document any, tell func(name, namespace string)) {
	if list, ok := document.([]any); ok {
		for _, item := range list {
			if object, ok := item.(map[string]any); ok {
				tellContext(object["@context"], tell)
			}
		}
		return
	}
	if object, ok := document.(map[string]any); ok {
		tellContext(object["@context"], tell)
	}
}

func tellContext(context any, tell func(name, namespace string)) {
	switch context := context.(type) {
	case []any:
		for _, c := range context {
			if _, nested := c.([]any); !nested { // which is no context
				tellContext(c, tell)
			}
		}
	case map[string]any:
		for term, means := range context {
			switch means := means.(type) {
			case string:
				if !strings.HasPrefix(term, "@") && strings.ContainsAny(means[max(0, len(means)-1):], ":/?#[]@") {
					tell(term, means)
				}
			case map[string]any:
				id, isText := means["@id"].(string)
				if yes, _ := means["@prefix"].(bool); yes && isText {
					tell(term, id)
				}
			}
		}
	}
}
