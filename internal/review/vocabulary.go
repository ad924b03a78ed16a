package review

import "koine/kg"

// The classes and properties of proposals and reviews.
var (
	classProposal = own("Proposal")
	classReview   = own("Review")

	propStatus        = own("status")
	propAuthor        = own("author")    // the principal
	propActor         = own("actor")     // the agent that it acted for
	propAuthority     = own("authority") // JSON: the rights of the author
	propCreated       = own("createdAt") //
	propExpires       = own("expiresAt") //
	propRequired      = own("requiredApprovals")
	propReviewerRole  = own("reviewerRole")
	propRule          = own("rule")             // that held the update
	propReason        = own("reason")           // for the review
	propPatches       = own("patches")          // a numbered piece of the JSON
	propPatchCount    = own("patchCount")       //
	propAbout         = own("about")            // a place: predicate and graph of patches
	propJustification = own("justification")    //
	propTask          = own("taskId")           //
	propSession       = own("sessionId")        //
	propMessage       = own("messageId")        //
	propExpected      = own("expectedRevision") // set by the author
	propReview        = own("review")           // to a review
	propEnded         = own("endedAt")          //
	propConflict      = own("conflict")         // reason for which it could not be applied
	propAppliedIn     = own("appliedIn")        // the revision

	propReviewer      = own("reviewer")
	propReviewerActor = own("reviewerActor")
	propDecision      = own("decision")
	propComment       = own("comment")
	propReviewed      = own("reviewedAt")

	rdfType = kg.IRI(kg.RDFType)
)

func own(name string) kg.Term { return kg.IRI(kg.OwnVocabulary + name) }

// graphOf returns the graph of a proposal, which is also its subject.
func graphOf(id string) kg.Term { return kg.IRI(kg.ProposalGraphPrefix + id) }

// pendingOf returns the graph with the statements that the proposal would add.
func pendingOf(id string) kg.Term { return kg.IRI(kg.PendingGraphPrefix + id) }
