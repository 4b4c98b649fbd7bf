"""What callers say for yes, no, another time, cancelling and neither, as tables of patterns.

The patterns see text as `yes_no.normalize` leaves it: lower case, with "can't" as "can not" and "I'll" as "i will".
"""

from collections.abc import Mapping

from .matching import listed

DAY = (
    r"(?:(?:on|at|by|for|this|that|next|the|around|about) )*"
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|today|tomorrow|tonight|then|day|date|time|week|month|morning|"
    r"afternoon|evening|slot|one|appointment|\d+(?: o'clock| am| pm)?)"
)
# Days and times that can't be the one that was offered unless they are named in the question.
OTHER = (
    r"(?:(?:on|in|by|for|to|the|a|bit|little|sometime|maybe|some time|at|until|till) )*"
    r"(?:(?:next )?(?:mon|tues|wednes|thurs|fri|satur|sun)days?|tomorrow|next (?:week|month|year|time)|later|earlier|"
    r"(?:week|day|month) after|following (?:week|day)|weekend|morning|afternoon|evening|(?:another|different|"
    r"other) \w+)"
)
_WE = r"(?:i|we|me|us|both of us|all of us)"
_SOFT = (
    r"(?:(?:really|just|actually|also|even|quite|very|so|still|certainly|definitely|absolutely|honestly|totally|"
    r"gladly|"
    r"happily|all|both|be|simply|at all|right|most|of course|always) )*"
)
_COME = (
    r"(?:come|coming(?! down)|there|attend|attending|make (?:it|that|this)|make the (?:appointment|meeting|time|visit)|"
    r"join|joining|show up|turn up|stop by|"
    r"drop by|participate|take part|on time|keep (?:it|that|this|the appointment|my appointment|the date|"
    r"the visit)|(?:do|"
    r"manage) (?:it|that|this)|able|available|around|"
    rf"free|do {DAY}|make {DAY})\b"
)
_WILL = (
    r"(?:will|can|shall|am|are|am going to|are going to|will be able to|am able to|am planning to|plan to|"
    r"was planning to|were planning to|intend to|would love to|would like to|would be (?:happy|glad|delighted) to|"
    r"am (?:happy|glad) to|want to|should|should be able to|can definitely|hoped to)"
)
_AUX = r"(?:can|could|will|would|shall|should|may|might|am|are|is|was|do|does|did|have|has)"
_NOT_AUX = rf"{_AUX} not"
_BARRIER = (
    r"(?:problem|issue|trouble|bother|worries|worry|sweat|biggie|big deal|objections?|question about it|doubts?|"
    r"conflicts?|complaints?|difficulty|inconvenience|hassle|reason (?:why )?not|reason to say no)"
)
_DUTY = (
    r"(?:work|job|school|class|classes|college|meetings?|appointments?|exams?|tests?|shifts?|conflicts?|plans|"
    r"engagement|commitments?|dentist|doctor|surgery|funeral|wedding|trip|flight|party|interview|practice|"
    r"training|game|match|visitors|guests|obligations?|deadline|court|(?:things?|something) (?:on|to do|planned|"
    r"going on|else|already|then|that day|at|important|in the)|"
    r"errands|(?:a )?lot on|too much|(?:the )?(?:flu|a cold|covid))"
)
_UNKNOWN = (
    r"(?:know|remember|understand|recall|hear|catch|get (?:it|that|what|your|you)|follow|say|tell|promise|"
    r"confirm|talk|speak)"
)

# In this order: of the patterns that fit at the same place the first counts. "" has no meaning of its own.
PHRASES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "",
        (
            r"oh (?:no|dear|my|god|gosh|wow)(?= i | we | not |$)",
            r"good (?:morning|afternoon|evening|day|night|lord|grief|heavens|god|luck|bye|gracious)",
            r"goodbye|bye(?: bye)?|hello(?! yes)|hi|hey|good for you|the other day|how are you(?: doing)?|"
            r"nice to (?:hear|meet|see)",
            r"(?:no )?(?:thank you|thanks)(?: so| very)?(?: much| a lot)?(?= for | that )",
            r"i (?:\w+ )?forgot(?: about| it| that| all)*",
            r"i (?:would )?(?:have to|must) (?:say|admit|tell you)|to (?:be|tell you) (?:quite )?(?:honest|"
            r"the truth)",
            r"i am (?:very |just |all )?(?:good|fine|well|ok|great)(?: thanks| thank you)?$|right now|and you",
            # A polite question that asks for another time or to cancel.
            r"(?:can|could|may|might|shall|should|would it be possible|is it possible|is there|are there|"
            r"do you have|what|"
            r"which|why do)(?: not)?(?: (?:i|we|you|it|to|please|be|any|maybe|perhaps|possibly|"
            r"just))*(?= (?:\w+ ){0,3}?"
            r"(?:reschedul|postpone|rebook|move (?:it|that|this)|change (?:it|that|the)|push|another (?:day|time|"
            r"date)|"
            r"different (?:day|time|date)|other (?:day|time|date)|later|earlier|cancel))",
            r"(?:that|it) is (?:very |so |really )?(?:nice|kind|good|sweet) of you",
            r"if (?:that|it) (?:is|would be|were) (?:okay|ok|alright|all right|fine|possible)|if (?:possible|"
            r"you (?:like|want|please|do not mind))",
            r"(?:hang|hold) (?:on )?i mean|no wait|i mean|you know",
        ),
    ),
    # A wish in the shape of a question.
    (
        "change",
        (
            r"(?:can|could|may|might|shall|why do not|why not|let us|make it|make that)(?: not(?= we| i|"
            r" you))?(?: we| i|"
            r" you)?(?: (?!not\b)\w+)?"
            rf"(?: (?:do|make|have|try|come|say|book|fit|see|it|me|in|this|that|for|on|to|push|back))* {OTHER}",
        ),
    ),
    (
        "open",
        (
            # Hedges.
            r"(?:i am |am |are |we are )?not (?:\w+ )?(?:sure|certain|positive)|no (?:idea|clue)|dunno|beats me|"
            r"who knows",
            rf"(?:\w+ )?not (?:\w+ )?(?:{_UNKNOWN}|decided|figured)\b|not yet|undecided|have not (?:\w+ )?decided",
            r"(?:i|we) (?:do|did) not care|whatever|either way|hard to say|fifty fifty|50 50",
            r"maybe|may be|perhaps|possibly|potentially|hopefully|might|i hope(?: so| to)?|could be|depends|"
            r"depending",
            r"(?:i|we) (?:will|can|could) (?:\w+ )?(?:try|see|think|check|ask|look|do my best|let you know|"
            r"get back)\b",
            r"i guess(?! so)|i suppose(?! so| i (?:can|could))|probably(?! not)|kind of|sort of|more or less|"
            r"possibly not|used to",
            r"let me|give me(?! another| a different)|let us see|have to (?:\w+ )?(?:check|ask|look|think|talk|"
            r"speak|discuss|clear|find|consult|confirm|leave|"
            r"see (?:if|whether|about|what|how|my)|go)\b|get back to|think (?:about|it over)",
            r"(?:hold|hang) on|(?:one|1|a|two|2|just a) (?:moment|second|sec|minute|minutes|seconds)|wait",
            r"never mind|never say never|yeah right|yes right now|good question",
            # Conditions.
            r"if|unless|only|as long as|provided|in case|whether|until|so long as|except",
            r"(?:after|before|till) (?:\d+|noon|lunch|work|school|midday)|not (?:\w+ ){0,3}(?:in|on) (?:my|the|our) "
            r"(?:calendar|diary|schedule)",
            # About somebody else: "she can't come to the phone".
            rf"(?:he|she|they|my (?!answer|schedule|calendar|diary|day|week|time)\w+) (?:\w+ )?{_AUX}\b",
            r"(?:i|we) (?:\w+ )?doubt|(?:said|saying|does|^say) (?:yes|no)|yes hello|hello yes",
            r"^this is (?!(?:fine|ok|good|great|perfect|bad|terrible|awful|not|too|a|the|very|really|so|my|our|"
            r"impossible|possible|"
            r"lovely|it|that|convenient|inconvenient|what|thursday)\b)\w+",
            # Not an answer, but that somebody is listening.
            r"^(?:yes|yeah|yep|yup|ok|sure) (?:this is|speaking|i am (?:here|listening|driving|on the phone)|"
            r"that is me$|(?:i|we) (?:can |do |just |already )*(?:hear|heard|see|know|understand|understood|get it|"
            r"got it))\b|^(?:i|we) (?:can )?hear you",
            # Questions, and things that an answer to another question has in it.
            r"(?:who|what|when|where|why|how|which|whose)(?: is| are)?\b(?! not$| about| ever you)",
            r"(?:^|(?<=^so )|(?<=^and )|(?<=^well ))(?:do|does|did|is|are|was|were|can|could|will|would|should|"
            r"shall|may|"
            r"must|have|has|had|am) (?:not )?(?:you|it|that|this|there|we|i|they|he|she|the|my|your|\d+|\w+day|"
            r"tomorrow)\b",
            r"pardon|excuse me|come again|say (?:that |it )?again|repeat|speak up|slower|(?:i am )?sorry$|huh|eh",
            r"call (?:me |us )(?:back|later|again|tomorrow)(?! to)|call (?:back|later)|(?:i will|"
            r"let me) call(?: you)?|wrong (?:number|"
            r"person)",
            r"this is (?:he|she|me|him|her|\w+ speaking)|speaking$|yes hello|hello yes",
            r"(?:would|could|should|might) have",
        ),
    ),
    (
        "change",
        (
            r"reschedul\w*|re schedul\w*|postpone\w*|rebook\w*|rearrang\w*|rain ?check|adjourn|put (?:it |that |"
            r"this )?off",
            r"(?:another|different|other|later|earlier|alternative|alternate|new) (?:day|days|time|times|date|"
            r"dates|week|"
            r"slot|slots|appointment|month|hour)(?: (?:would|might|will) be (?:better|good|great|fine))?",
            r"(?:some|any) other (?:day|time|date|week)|(?:some|any) ?(?:time|day) else|other than (?:that|thursday)",
            r"(?:change|move|shift|push|switch|swap|delay) (?:it|that|this|the (?:date|time|day|appointment|booking)|"
            r"my appointment)(?: back| forward| to| up)?",
            rf"{OTHER} (?:instead|rather)|(?:some|a bit|a little) (?:later|earlier|sooner)|later (?:in|on|this|that)",
            rf"{OTHER}(?: \w+){{0,2}}? (?:better|easier|best|preferable)(?: (?:for|with) (?:me|us))?",
            rf"(?:rather|prefer)(?: (?:to|do|have|come|go|it|say|in|on|a|the|if it was))* {OTHER}",
            rf"(?:how|what) about {OTHER}|(?:do|have|got) you (?:have |got )?any(?:thing)? (?:else|other|on|later|"
            r"earlier)",
        ),
    ),
    (
        "cancel",
        (
            r"(?:^cancel\w*|(?:(?<=to )|(?<=please )|(?<=i )|(?<=just )|(?<=will )|(?<=you )|(?<=not ))cancel|"
            r"call (?:it|the whole thing|that) off|scrap it|drop it)(?: (?:it|that|this|everything|the|my|whole|"
            r"thing|appointment|booking|please))*",
        ),
    ),
    (
        "yes",
        (
            # Negated negatives.
            r"no way (?:i|we) (?:\w+ )?(?:miss|forget|say no)\w*",
            rf"(?:{_AUX} )?(?:not|no|never|nothing|without|zero) (?:\w+ )?(?:a |an |any |the |much of a |such a |"
            rf"see |have |be |think |that |is |it |will |would )*{_BARRIER}",
            rf"(?:{_AUX} )?(?:not|never) (?:want to |going to |dream of |dare |think of |let myself |planning to |"
            r"ever )*miss(?:ing|ed)?(?: it| that| this)?",
            r"(?:do|would|does) not (?:\w+ )?mind(?: at all)?|no skin off",
            r"can (?:not|hardly|barely) wait|could not be (?:better|happier)|(?:could|can) not agree more",
            rf"(?:{_AUX} )?not (?:ask |think |wish |imagine |do |hope )?(?:of |for )?(?:anything|any|a) (?:i would )?"
            r"(?:better|nicer|rather)",
            rf"(?:{_AUX} )?(?:be )?not (?:be )?(?:a |such a |half |too |so |that |all that )*(?:bad|terrible|awful|"
            r"the worst)(?: idea| time| day| plan)*",
            rf"(?:{_AUX} )?not (?:hurt|refuse|hesitate|say no|object|complain|forget(?: it| about it)?|be late|"
            r"argue)|why (?:ever |would i )?not$",
            r"(?:not |no )(?:\w+ )?(?:see |know )?(?:any )?(?:reason )?why not",
            r"nothing (?:planned|on|scheduled|else (?:on|planned)|going on|against(?: it| that)?|special)|"
            r"no (?:other |special |particular )?plans",
            r"nothing (?:i|we) would (?:rather|like|love)(?: more| better| do)*|nothing (?:would|could|will|can|"
            r"is going to)(?: \w+)?(?: (?:keep|stop|make|please)\w*)?",
            r"(?:not|do not) (?:have|need) to (?:work|be anywhere)|no change(?:s)?(?: needed| necessary)?|"
            r"not (?:change|changed)",
            # Statements.
            rf"{_WE} {_SOFT}{_WILL} {_SOFT}{_COME}",
            r"(?:^|(?<=^yes )|(?<=^ok )|(?<=^sure )|(?<=it )|(?<=that ))(?:will|can|should|would love to|"
            r"would like to|happy to|glad to) "
            rf"{_SOFT}(?:come|be there|attend|make it|do|be (?:fine|okay|ok|good|great|perfect|alright))(?: it|"
            r" that)?",
            rf"{_WE} {_SOFT}(?:can|will|do|am|are|would|could) ?{_SOFT}$|it (?:is|does|will)$|be there|"
            r"make (?:the )?time",
            rf"(?:that|it|this|which|{DAY}) (?:will |would |should |can |still |does |really )*works?\b|"
            r"was (?:\w+ )?planning (?:to|on it)$",
            rf"(?:{_WE} )?(?:would )?(?:love|like|be (?:happy|glad|delighted|pleased|thrilled|honou?red))(?: to|"
            r" that| it| too)*$",
            rf"(?:{_WE} )?(?:would )?(?:love|like) (?:to|that|it) (?:very much|come|be there|hear|know|learn|"
            r"attend|confirm)|wants? to (?:know|learn|hear) more",
            rf"(?:count|put|sign|pencil|book) (?:me|us) (?:in|down|up)|count on (?:me|us|it)|"
            rf"{_WE} (?:am|are) (?:in|game|on board|down)(?= for |$)|(?:am|are) (?:in|down) with (?:that|it)|"
            r"(?:my )?day off|am off (?=then|that|"
            r"on)|on (?:my|our) way|expect me|consider it done",
            rf"see (?:you|ya|u)(?! later| around)(?: all| guys| both| there| soon| {DAY})*|(?:until|till) {DAY}$|"
            rf"{DAY} it is",
            r"look(?:ing)? forward(?: to)?|(?:with|my) pleasure|wild horses|(?:just )?try (?:and|to) stop (?:me|us)",
            r"(?:in|on|into|to) (?:my|the|our) (?:calendar|diary|schedule|agenda)|it is a (?:date|deal)",
            r"i (?:think|believe|suppose|guess|expect|reckon|imagine|should think|would think|would say|"
            r"am afraid) so|i (?:suppose|guess) i (?:can|could)",
            r"(?:tell|send|show) me(?: a (?:bit|little))?(?: more| about it)|(?:go|carry) (?:ahead|on)$|(?:fire|"
            r"ask) away|^shoot$|"
            r"please do(?! not)|let us do (?:it|that|this)|do it",
            r"by all means|of course(?! not)|for (?:sure|certain)(?! not)|sure thing|you (?:bet|got it|betcha|"
            r"can count on|know it)",
            r"sounds (?:\w+ )?(?:interesting|like a (?:plan|deal|good \w+))|rain or shine|oh please$|^please$",
            r"(?:(?:^|(?<=^oh )|(?<=^well )|(?<=^yes ))(?:absolutely|definitely|totally|(?:most )?certainly|"
            r"naturally|indeed|exactly)(?= (?:yes|i |we )|$)|(?:absolutely|definitely|certainly|totally|indeed)$)",
            r"(?:100|hundred) ?(?:percent)?(?: sure)?$|no kidding|without (?:a )?(?:fail|question)|can do|"
            r"will do(?! my| the)|all set",
            # One word.
            r"yes|yeah|yep|yup|yea|yah|ya|yas|yess+|yessir|aye|affirmative|uh huh|mm+ ?hm+|mhm+|mm+ hmm+|okie dokie|"
            r"gladly|agree[ds]?|(?<!make )sure|true|correct|confirm(?:s|ed|ing)?|accept(?:s|ed)?|roger|righto",
        ),
    ),
    (
        "no",
        (
            rf"{_NOT_AUX} {_SOFT}(?:{_COME}|be (?:home|in|possible|interested)\b|be$|going to|able|"
            r"(?:want|like|wish|need)(?! (?:to |it )*(?:cancel|chang|reschedul|mov|postpon|another|a different|"
            r"miss|pass|talk|speak))|"
            rf"work|suit|fit|think so|think (?:i|"
            r"we|it|that)|"
            r"possible|interested|convenient|feasible|in town|at home|home|allowed|going|get (?:away|off|there|out|"
            r"time)|"
            r"find (?:the )?time|leave|drive|travel|walk|arrange|accept|commit|afford|happen|let me|take part|"
            r"participate|"
            r"agree|approve|recommend|go|help|feel|swing|squeeze|spare|take (?:it|that)|this time|now|today|"
            rf"(?:on |at |that |this )*{DAY})",
            rf"(?:{_WE} )?{_NOT_AUX}$|not {DAY}|not (?:really|quite|at all|so much|particularly|up (?:for|"
            r"to) (?:it|that)|in a million years)$|"
            r"not (?:(?:right )?now|me|for me|this time|today|anymore|any more|interested|likely|possible|feasible|"
            r"convenient|necessary|going|coming|a chance|ever|free|available|"
            r"unfortunately|in town|good|great|ideal|fine|okay|ok|happy|satisfied|happening|suitable|well|up to it|"
            r"on your life)",
            r"(?:i am )?afraid not|(?:probably|unfortunately|sadly|regrettably|sorry|certainly|definitely|"
            r"absolutely|of course|"
            r"i (?:think|guess|suppose|hope)|rather|better|prefer|please|why|yes|yeah|ok|but|no) not$",
            r"(?:would |had )?(?:rather|better|prefer) not|(?:rather|prefer) to not",
            r"(?:no|not a|fat|slim) (?:chance|way)(?: (?:that )?(?:i|we) (?:can|could|will|would|"
            r"am)(?: \w+){0,3})?|no (?:can do|good|use|need|time|car|interest|room)|far from it|"
            r"anything but",
            r"no (?:more|further)(?: questions?)?|nothing (?:else|more|further)|that (?:is|will be|"
            r"would be) (?:all|everything)",
            r"i wish(?: i (?:could|can)|$)|if only|(?:i|we) (?:will|would|am going to|have to|must|"
            r"might have to)? ?(?:have to )?"
            r"(?:pass|decline|refuse|skip|bow out|say no)\b(?: on)?|count (?:me|us) out|^(?:hard )?pass$|"
            r"nothing doing|leave me (?:out|alone)|forget (?:it|about it)",
            r"(?:take|remove|get) (?:me|us|my number|my name) (?:off|from)|stop (?:calling|phoning|ringing|"
            r"bothering)|"
            r"(?:do not|never) (?:ever )?(?:call|phone|ring|bother|contact)|unsubscribe|opt out|"
            r"like hell(?: i (?:can|will|do|am|would))?",
            # Obstacles.
            rf"(?:{_WE} |^){_SOFT}(?:already )?(?:have|had|has|got) {_SOFT}(?:already )?(?:a |an |another |other |"
            r"some |my |to go to |"
            r"the |prior |previous |important |business |family |work |doctor s |dentist s |doctor is |dentist is |"
            r"doctor |dentist |job |"
            rf"night |late |early |medical |hospital |too many |lots of |so many )*{_DUTY}",
            rf"{_WE} {_SOFT}(?:have|need) to (?:be(?! there| honest| sure)|take|pick|go to|attend|visit|fly|travel|"
            r"stay|look after|drive|see (?:a|my|the)|"
            r"help|babysit|mind|study|prepare|collect|catch|care|pack|move|cook|clean|work)\b",
            rf"{_WE} (?:am|are|will be|was|would be) {_SOFT}(?:already |going to be |going |all |pretty |too |"
            r"supposed to be |still )*(?:out of town|out|away|"
            r"busy|working|at (?:work|school) (?:on|then|that|until|all|every)|travell?ing|abroad|sick|ill|unwell|"
            r"on (?:vacation|holiday|leave|call|duty|"
            r"shift|a (?:trip|business trip|plane|cruise|train))|in (?:hospital|the hospital|a meeting|meetings|"
            r"bed|class|court|"
            r"surgery|another)|stuck|unavailable|booked|double booked|fully booked|tied up|swamped|flying|moving|"
            r"otherwise engaged|"
            r"engaged|occupied|snowed under|too (?:tired|sick|ill|busy|old|far)|teaching|overseas|"
            r"gone)\b(?! (?:right )?now| at the moment| on it| for this)",
            rf"(?:i|we) (?:always |usually |normally )?work(?:ing)?(?:$| (?:on )?{DAY}| nights| late| weekends|"
            r" then)",
            rf"(?:that|it|this|{DAY}) (?:is|will be|would be) (?:\w+ )?(?:a |an )?(?:bit of a |real |"
            r"big )?(?:problem|issue|conflict)",
            r"something (?:\w+ )?(?:came|has come|is|come) up|too (?:early|late|soon|far|busy|expensive|tight)"
            r"(?: for (?:me|us))?|short notice|out of the question|out of town",
            # One word.
            r"(?:do|would) mind|nope|nah|nay|no|uh uh|nuh uh|mm mm|unable|impossible|uninterested|unavailable|"
            r"refuse[ds]?|"
            r"decline[ds]?|disagree[ds]?|reject(?:s|ed)?",
        ),
    ),
)
# Words that answer only where all else in their part of the sentence is known: "Thursday is bad", not "my knee is bad".
WEAK: Mapping[str, tuple[str, ...]] = {
    "yes": tuple(
        listed(
            "good great perfect fine okay ok k alright lovely wonderful excellent fantastic awesome brilliant "
            "super cool nice splendid ideal works suits suit fits fit interested free available possible doable "
            "convenient right deal happy glad delighted satisfied coming attend attending keep keeps kept "
            "continue accept happily open positive"
        )
    ),
    "no": tuple(
        listed(
            "bad terrible awful horrible tough tricky difficult hard full packed hectic crazy inconvenient "
            "nightmare problematic busy worst stop afraid unsuitable useless clashes sick ill unfortunately "
            "neither incorrect wrong false negative"
        )
    ),
}
NEGATORS = frozenset(listed("not never no hardly barely without nor scarcely"))
# They negate as well, but are no answer alone.
ABSENCES = frozenset(listed("nothing none nobody nowhere"))
# Words that say nothing against a weak one.
KNOWN = frozenset(
    listed(
        "a about after again ah all also am an and any anything are as at aw be been both but by can could course "
        "date day days did do does else er erm evening ever everything first for from going had has have he hmm "
        "hm i if in indeed is it just like looks lot made make makes me mean more than might mine morning much my "
        "night noon now of oh ok on one or our perfectly plan please pretty quite rather really say seems see "
        "shall she should so some soon sound sounds still such sure thank thanks that the then there these they "
        "thing think this those time times to today tomorrow tonight too totally u uh um until up us usually very "
        "was we week well were what will with won would ya you your afternoon absolutely actually certainly "
        "definitely simply works agenda idea schedule me you o'clock am pm half past quarter clock honestly truly "
        "mostly always already once here wow gosh date slot appointment visit want need monday tuesday wednesday "
        "thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays sundays who dear sir "
        "madam ma'am mate man dude love buddy most extremely"
    )
)
# Words after "no" that make it the word of another phrase: "no Friday", "no I" and "no sorry" are an answer.
ANSWER_AFTER_NO = frozenset(
    listed(
        "i we it is that the then thanks thank thankyou not no sorry please unfortunately never you "
        "but and or can could do did does will would have am are they he she nope nah really actually definitely "
        "absolutely certainly from sir madam mate man way ma'am oh well just because on at for to let what who "
        "how why when where only maybe today tomorrow monday tuesday wednesday thursday friday saturday sunday "
        "monday cancel wait yes yeah"
    )
)


# -- yes, no, another time, cancelling and neither in other languages than English, as whole phrases


# By language, then by intent; phrases are separated by "|".
OTHER_LANGUAGES: Mapping[str, Mapping[str, str]] = {
    "es": {
        "yes": (
            "sí|si|claro|claro que sí|por supuesto|vale|de acuerdo|perfecto|bueno|con gusto|no hay problema|"
            "allí estaré|está bien|sin problema|por qué no|desde luego"
        ),
        "no": (
            "no gracias|no puedo|no quiero|no me va bien|no me interesa|tampoco|imposible|en absoluto|"
            "lo siento no|ahora no|nunca"
        ),
        "change": "otro día|otra fecha|otra hora|cambiar la cita",
        "open": (
            "no sé|no lo sé|quizás|quizá|tal vez|a lo mejor|puede ser|depende|no estoy seguro|no estoy segura|"
            "pero|solo si|quién|qué|cuándo|cómo"
        ),
    },
    "fr": {
        "yes": (
            "oui|ouais|bien sûr|d'accord|avec plaisir|volontiers|parfait|ça marche|ça me va|pas de problème|"
            "pas de souci|pourquoi pas|certainement|entendu|c'est bon"
        ),
        "no": (
            "non|non merci|pas vraiment|je ne peux pas|je peux pas|je ne veux pas|malheureusement pas|"
            "pas du tout|impossible|ça ne me va pas|ça ne va pas|jamais|pas intéressé|pas maintenant"
        ),
        "change": "un autre jour|une autre date|une autre heure|changer la date|reporter",
        "open": (
            "je ne sais pas|je sais pas|peut-être|ça dépend|je ne suis pas sûr|je ne suis pas sûre|mais|"
            "seulement si|qui|quoi|quand|comment|pardon"
        ),
    },
    "de": {
        "yes": (
            "ja|jawohl|jo|jep|gerne|sehr gerne|natürlich|klar|na klar|sicher|selbstverständlich|in ordnung|"
            "passt|das passt|passt gut|passt mir|geht|das geht|geht klar|einverstanden|ich komme|"
            "ich kann kommen|können kommen|kommt|sie kommen|kein problem|warum nicht|nichts dagegen|"
            "auf jeden fall|stimmt|genau|perfekt|bis dann|freue mich"
        ),
        "no": (
            "nein|nein danke|nö|nee|leider nicht|leider nein|geht nicht|das geht nicht|geht leider nicht|"
            "passt nicht|passt mir nicht|passt leider nicht|kann nicht|kann leider nicht|ich kann da nicht|"
            "nicht kommen|kommt nicht|komme nicht|will nicht|möchte nicht|auf keinen fall|keine zeit|"
            "kein interesse|nicht wirklich|eher nicht|niemals|nie|unmöglich|nicht interessiert|muss arbeiten|"
            "lieber nicht|glaube nicht|ich denke nicht"
        ),
        "change": (
            "anderer tag|einen anderen tag|ein anderer tag|anderen termin|ein anderer termin|andere zeit|"
            "ein andermal|verschieben|verlegen|lieber"
        ),
        "cancel": "absagen|stornieren",
        "open": (
            "weiß nicht|ich weiß nicht|weiß ich nicht|weiß noch nicht|nicht sicher|vielleicht|mal sehen|"
            "kommt darauf an|kommt drauf an|eventuell|wie bitte|aber|nur wenn|wer|was|wann|wo|wie|nicht"
        ),
    },
    "it": {
        "yes": (
            "sì|sì certo|certo|certamente|va bene|d'accordo|volentieri|con piacere|perfetto|ovviamente|"
            "non c'è problema|nessun problema|perché no|ci sarò|benissimo"
        ),
        "no": (
            "no grazie|non posso|purtroppo no|purtroppo non posso|non voglio|non mi va bene|non mi interessa|"
            "impossibile|assolutamente no|mai|per niente"
        ),
        "change": "un altro giorno|un'altra data|un'altra ora|spostare",
        "open": (
            "non so|non lo so|forse|dipende|non sono sicuro|non sono sicura|può darsi|ma|solo se|chi|che cosa|quando"
        ),
    },
    "pt": {
        "yes": (
            "sim|claro|com certeza|pode ser|está bem|tudo bem|de acordo|combinado|perfeito|com prazer|"
            "sem problema|não tem problema|por que não|estarei lá"
        ),
        "no": (
            "não|não obrigado|não obrigada|não posso|infelizmente não|não quero|não dá|não me interessa|"
            "impossível|de jeito nenhum|nunca|agora não"
        ),
        "change": "outro dia|outra data|outra hora|remarcar",
        "open": "não sei|talvez|depende|não tenho certeza|mas|só se|quem|quê|quando|como",
    },
    "nl": {
        "yes": (
            "ja|ja hoor|jazeker|graag|natuurlijk|zeker|prima|goed|akkoord|geen probleem|dat past|dat kan|"
            "komt goed|waarom niet|tot dan|uiteraard"
        ),
        "no": (
            "nee|nee dank je|nee bedankt|helaas niet|ik kan niet|kan niet|dat kan niet|lukt niet|"
            "dat lukt niet|past niet|geen interesse|geen tijd|liever niet|nooit|onmogelijk|niet echt"
        ),
        "change": "een andere dag|andere dag|een andere tijd|verzetten|verplaatsen",
        "open": (
            "weet ik niet|weet niet|ik weet het niet|misschien|hangt ervan af|niet zeker|maar|alleen als|wie|"
            "wat|wanneer|hoe|niet"
        ),
    },
    "pl": {
        "yes": (
            "tak|oczywiście|jasne|pewnie|dobrze|zgoda|chętnie|nie ma problemu|bez problemu|czemu nie|pasuje|"
            "przyjdę|zgadza się"
        ),
        "no": (
            "nie|nie dziękuję|niestety nie|nie mogę|nie chcę|nie pasuje|raczej nie|nigdy|niemożliwe|wcale nie|"
            "nie jestem zainteresowany"
        ),
        "change": "inny dzień|inny termin|innego dnia|przełożyć",
        "open": ("nie wiem|może|być może|zależy|nie jestem pewien|nie jestem pewna|ale|tylko jeśli|kto|co|kiedy|jak"),
    },
    "sv": {
        "yes": (
            "ja|jo|japp|jajamän|visst|ja visst|javisst|självklart|gärna|absolut|okej|inga problem|det går bra|"
            "det passar|det blir bra|varför inte|vi ses"
        ),
        "no": (
            "nej|nej tack|tyvärr inte|jag kan inte|kan inte|det går inte|går inte|passar inte|vill inte|"
            "inte intresserad|aldrig|helst inte|omöjligt"
        ),
        "change": "en annan dag|annan dag|en annan tid|boka om|flytta",
        "open": "vet inte|jag vet inte|kanske|det beror på|inte säker|bara om|vem|vad|när|hur|inte",
    },
    "hi": {
        "yes": ("हाँ|हां|जी|जी हाँ|जी हां|ठीक है|बिल्कुल|ज़रूर|जरूर|कोई बात नहीं|haan|haan ji|theek hai|bilkul|zaroor"),
        "no": "नहीं|जी नहीं|ना|बिल्कुल नहीं|मैं नहीं आ सकता|मैं नहीं आ सकती|nahi|nahin|ji nahi",
        "change": "कोई और दिन|दूसरा दिन|किसी और दिन",
        "open": "पता नहीं|मुझे नहीं पता|शायद|लेकिन|कौन|क्या|कब|pata nahi|shayad",
    },
    "ja": {
        "yes": (
            "はい|ええ|うん|もちろん|大丈夫です|大丈夫|いいです|いいですよ|行けます|行きます|お願いします|"
            "喜んで|問題ありません|了解です|わかりました"
        ),
        "no": "いいえ|いや|いえ|だめです|無理です|無理|行けません|できません|結構です|ちょっと無理|都合が悪い",
        "change": "別の日|他の日|ほかの日|変更",
        "open": "わかりません|分かりません|たぶん|多分|もしかしたら|でも|誰|何|いつ|大丈夫ですか",
    },
    "zh": {
        "yes": "是|是的|好|好的|可以|行|对|没问题|当然|当然可以|我会来|我来|能来|嗯|没关系",
        "no": (
            "不|不是|不行|不可以|不能|不能来|不好|没有|没空|没时间|不要|不用|不用了|不来|不方便|来不了|不去|不感兴趣"
        ),
        "change": "换一天|改天|另一天|改时间|换个时间",
        "open": "不知道|不确定|不一定|也许|可能|看情况|但是|不过|谁|什么|怎么|吗",
    },
}
