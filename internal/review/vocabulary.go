package review

import "koine/kg"

// The classes and properties of proposals and reviews.
var (
	classProposal = own("Proposal")
	classReview   = own("Review")

	propStatus        = own("status")
	propAuthor        = own("author")    // the principal
	propActor         = own("actor")     // the agent that it acted for
	propAuthority     = own("authority") // JSON: with which rights the author acted
	propCreated       = own("createdAt") //
	propExpires       = own("expiresAt") //
	propRequired      = own("requiredApprovals")
	propReviewerRole  = own("reviewerRole")
	propRule          = own("rule")             // that holds it
	propReason        = own("reason")           // why it is held
	propPatches       = own("patches")          // a piece of the JSON, behind its number
	propPatchCount    = own("patchCount")       //
	propAbout         = own("about")            // a place: predicate and graph of patches
	propJustification = own("justification")    //
	propTask          = own("taskId")           //
	propSession       = own("sessionId")        //
	propMessage       = own("messageId")        //
	propExpected      = own("expectedRevision") // that the author set
	propReview        = own("review")           // to a review
	propEnded         = own("endedAt")          //
	propConflict      = own("conflict")         // why it could not be applied
	propAppliedIn     = own("appliedIn")        // the revision

	propReviewer      = own("reviewer")
	propReviewerActor = own("reviewerActor")
	propDecision      = own("decision")
	propComment       = own("comment")
	propReviewed      = own("reviewedAt")

	rdfType = kg.IRI(kg.RDFType)
)

func own(name string) kg.Term { return kg.IRI(kg.OwnVocabulary + name) }

// graphOf is the graph of a proposal, and the proposal as a subject.
func graphOf(id string) kg.Term { return kg.IRI(kg.ProposalGraphPrefix + id) }

// pendingOf is the graph with what the proposal would add.
func pendingOf(id string) kg.Term { return kg.IRI(kg.PendingGraphPrefix + id) }
