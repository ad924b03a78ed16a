package proposals

import "koine/kg"

// The classes and properties of proposals and reviews.
var (
	classProposal = ownTerm("Proposal")
	classReview   = ownTerm("Review")

	propStatus        = ownTerm("status")
	propAuthor        = ownTerm("author")    // the principal
	propActor         = ownTerm("actor")     // the agent that it acted for
	propAuthority     = ownTerm("authority") // JSON: the rights of the author
	propCreated       = ownTerm("createdAt") //
	propExpires       = ownTerm("expiresAt") //
	propRequired      = ownTerm("requiredApprovals")
	propReviewerRole  = ownTerm("reviewerRole")
	propRule          = ownTerm("rule")             // that held the update
	propReason        = ownTerm("reason")           // for the review
	propPatches       = ownTerm("patches")          // a numbered piece of the JSON
	propPatchCount    = ownTerm("patchCount")       //
	propAbout         = ownTerm("about")            // a place: predicate and graph of patches
	propJustification = ownTerm("justification")    //
	propTask          = ownTerm("taskId")           //
	propSession       = ownTerm("sessionId")        //
	propMessage       = ownTerm("messageId")        //
	propExpected      = ownTerm("expectedRevision") // set by the author
	propReview        = ownTerm("review")           // to a review
	propEnded         = ownTerm("endedAt")          //
	propConflict      = ownTerm("conflict")         // reason for which it could not be applied
	propAppliedIn     = ownTerm("appliedIn")        // the revision

	propReviewer      = ownTerm("reviewer")
	propReviewerActor = ownTerm("reviewerActor")
	propDecision      = ownTerm("decision")
	propComment       = ownTerm("comment")
	propReviewed      = ownTerm("reviewedAt")

	rdfType = kg.IRI(kg.RDFType)
)

func ownTerm(name string) kg.Term { return kg.IRI(kg.OwnVocabulary + name) }

// graphOf returns the graph of a proposal, which is also its subject.
func graphOf(id string) kg.Term { return kg.IRI(kg.ProposalGraphPrefix + id) }

// pendingOf returns the graph with the statements that the proposal would add.
func pendingOf(id string) kg.Term { return kg.IRI(kg.PendingGraphPrefix + id) }
