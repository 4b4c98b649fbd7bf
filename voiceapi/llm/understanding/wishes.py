"""Recognises what a caller asks of the service: a person, the question again, or no more calls."""

import re
import unicodedata

from .yes_no import LONGEST, normalize

_WHO = (
    r"(?:(?:a|an|the|your|some|my|any|actual|real|live|human|another) )*(?:person|people|human|human being|operator|"
    r"agent|representative|rep|manager|supervisor|receptionist|advisor|adviser|assistant|secretary|staff|employee|"
    r"customer service|member of staff|colleague)"
)
_ANYBODY = r"(?:someone|somebody|anyone|anybody)(?: else| real| human| there)?"
_REQUEST = re.compile(
    rf"\b(?:(?:talk|speak|chat) (?:directly )?(?:to|with)|connect me (?:to|with)|put me (?:through to|on to|on with)|"
    rf"transfer me to|pass me (?:on )?to|get me|give me|put on) (?:{_WHO}|{_ANYBODY})\b"
    rf"|\b(?:want|need|prefer|like|rather have) {_WHO}\b"
    r"|\b(?:transfer|connect) me(?: please)?$|\bput me through(?: please)?$"
    rf"|^(?:(?:no|please|just|um|uh|i said|can i (?:get|have)|could i (?:get|have)) )*{_WHO}(?: please| now)*$"
    r"|\bmitarbeiter(?:in)?\b|\bmit einem menschen\b|\bopérateur\b|\bconseiller\b|\boperador(?:a)?\b|\bun agente\b|"
    r"\bcon una persona\b|\boperatore\b|\bmedewerker\b|\bkonsultant(?:em|ką)?\b|\bmed en människa\b|オペレーター|人工"
)
# "I need to talk to someone first" is a doubt, and "I don't want an operator" the opposite.
_OTHERWISE = re.compile(
    r"\b(?:not|never|no need)\b.*\b(?:talk|speak|want|need|like)|\b(?:first|before)\b|\bwife|\bhusband"
)
_ASIDE = re.compile(r"[.,!?;:]")


def wants_person(said: str) -> bool:
    """Whether the caller asks for a person, an operator or a transfer."""
    parts = [part.strip() for part in _ASIDE.split(normalize(said[-LONGEST:]))]
    return any(_REQUEST.search(part) and not _OTHERWISE.search(part) for part in parts)


def offers_person(label: str, condition: str) -> bool:
    """Whether an edge is meant for callers who ask for a person."""
    words = normalize(label)
    named = re.search(r"\b(?:human|operator|agent|representative|transfer|staff|somebody|someone|person)\b", words)
    return bool(named) or bool(_REQUEST.search(normalize(condition)))


# -- the question again

_FILLERS = r"(?:(?:um|uh|er|oh|sorry|ok|yes|yeah|well|hello|hi|hey|wait|and|but|please|excuse me) )*+"
# The whole of a text without punctuation.
_AGAIN = re.compile(
    _FILLERS + r"(?:who(?: the hell)? (?:is|are) (?:this|that|it|you|there|calling|speaking|on the (?:line|phone))"
    r"(?: (?:calling|speaking))?|(?:may|can|could) i ask who (?:is|are) (?:this|calling|speaking|you)|"
    r"who am i (?:talking|speaking) (?:to|with)|who did you say you (?:are|were)|what is (?:this|it) about|"
    r"where are you calling from|pardon(?: me)?|come again|hello|huh|excuse me|sorry|i beg your pardon|"
    r"what(?: was (?:that|the question)| did you (?:just )?(?:say|ask)| is that)?|"
    r"(?:(?:can|could|would|will) you |please )*(?:repeat|say|ask)(?: (?:that|it|this|the question|yourself|what you "
    r"(?:just )?said))?(?: (?:again|once more|one more time))?|(?:one|once) more(?: time)?|again|"
    r"i (?:did|do|could|can) not (?:quite |really )?(?:hear|catch|get|understand|follow)"
    r"(?: (?:that|you|it|this|a word|anything|the question|what you (?:just )?said))?)"
    r"(?: (?:please|again|sorry|there|now|to me|for me))*+"
)
_AGAIN_IN_OTHER_LANGUAGES = frozenset(
    phrase
    for language in (
        "quién es|quién habla|quién llama|de parte de quién|cómo|cómo dice|perdón|perdone|puede repetir|puede "
        "repetirlo|"
        "me lo repite|repita por favor|otra vez por favor|no le oigo|no le he oído|no entiendo|no le entiendo|hola",
        "qui est-ce|c'est qui|qui êtes-vous|qui est à l'appareil|c'est de la part de qui|pardon|comment|"
        "vous pouvez répéter|pouvez-vous répéter|répétez s'il vous plaît|je n'ai pas compris|je n'ai pas entendu|allô",
        "wer ist da|wer sind sie|wer spricht da|wer ist dran|mit wem spreche ich|wie bitte|bitte|entschuldigung|was|"
        "können sie das wiederholen|noch einmal bitte|nochmal bitte|ich habe sie nicht verstanden|"
        "ich habe das nicht verstanden|das habe ich nicht verstanden|hallo",
        "chi è|chi parla|con chi parlo|chi siete|come|come scusi|scusi|prego|può ripetere|puoi ripetere|"
        "ripeta per favore|non ho capito|non ho sentito|non la sento|pronto",
        "quem é|quem fala|quem está falando|quem está a falar|com quem falo|como|desculpe|perdão|pode repetir|"
        "repita por favor|não entendi|não ouvi|não percebi|alô|está lá",
        "wie is dit|wie bent u|met wie spreek ik|wie is daar|pardon|sorry|wat zegt u|wat zei u|kunt u dat herhalen|"
        "nog een keer|nog een keer alstublieft|ik versta u niet|ik heb het niet verstaan|hallo",
        "kto mówi|kto dzwoni|kto to|z kim rozmawiam|słucham|proszę|przepraszam|może pan powtórzyć|może pani powtórzyć|"
        "proszę powtórzyć|nie zrozumiałem|nie zrozumiałam|nie słyszę|halo",
        "vem är det|vem är du|vem pratar jag med|vem talar jag med|förlåt|ursäkta|va|vad sa du|kan du upprepa|"
        "kan du säga det igen|en gång till|jag hörde inte|jag förstod inte|hallå",
        "कौन बोल रहा है|कौन बोल रहे हैं|कौन है|आप कौन हैं|आप कौन|क्या|क्या कहा|फिर से बोलिए|फिर से कहिए|दोबारा बोलिए|"
        "दोबारा कहिए|समझ नहीं आया|सुनाई नहीं दिया|माफ कीजिए|हैलो|हेलो",
        "どちら様ですか|どちらさまですか|誰ですか|どなたですか|え|もう一度|もう一度お願いします|もう一度言ってください|"
        "聞こえません|聞こえませんでした|わかりません|何ですか|もしもし",
        "你是谁|您是谁|谁啊|哪位|您哪位|你哪位|请问哪位|什么|你说什么|再说一遍|请再说一遍|能再说一遍吗|可以重复一下吗|没听清|"
        "我没听清|没听懂|听不清|喂",
    )
    for phrase in language.split("|")
)
_NO_WORD = re.compile(r"[^\w\s'-]|_")
# A question for who calls is shorter; of a longer text no part is only that.
_LONGEST_QUESTION = 200


def asks_again(said: str) -> bool:
    """Whether the caller only asks who calls, what was said, or to hear it again. In any of the twelve languages."""
    if len(said) > _LONGEST_QUESTION:
        return False
    text = _without_marks(said)
    return text in _AGAIN_IN_OTHER_LANGUAGES or _AGAIN.fullmatch(normalize(text)) is not None


def _without_marks(text: str) -> str:
    """The text in lower case, with blanks for punctuation but apostrophes and hyphens."""
    text = unicodedata.normalize("NFC", text).casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    return " ".join(_NO_WORD.sub(_blank_for_mark, text).split())


def _blank_for_mark(found: re.Match[str]) -> str:
    # Vowel signs of Hindi are neither letters nor marks.
    return " " if unicodedata.category(found[0])[0] in "PS" else found[0]


# -- no more calls

_ME = r"(?:me|us|here|this number|my number|this phone|my phone|my (?:house|home|office))"
_EVER_AGAIN = (
    r"(?: (?:(?:again|any ?more)(?: sir| madam| man)?|ever(?: again)?|back|no more|at all|please|ok|thanks|thank you|"
    r"on this (?:number|phone)|at this number|in the future|from now on|already))*"
)
_CALLS = r"(?:phone |sales |marketing |calling |call |contact |telemarketing |dialing |phoning )"
# A list of people to call; "the list" alone only at the end.
_LIST = (
    rf"(?:(?:your|this|that|these|any|all) (?:\w+ ){{0,2}}?|the {_CALLS})"
    r"(?:list|lists|database|system|records|file|files|register)\b|the list(?: please| now| again)*$"
)
# Each is sought in a clause of English; to its end, so that "don't call me Ann" and "... me tomorrow" are none.
_NO_CALLS = re.compile(
    rf"\b(?:(?:do not|never) (?:you )?(?:ever )?(?:call|phone|ring|contact|bother|telephone|dial) (?:{_ME}|again|back)"
    rf"{_EVER_AGAIN}$|please not (?:to )?(?:call|phone|ring|contact|bother) {_ME} (?:again|any ?more)\b|"
    rf"(?:stop|quit) (?:(?:calling|phoning|telephoning)(?: {_ME})?|(?:ringing|bothering|contacting|harassing) {_ME})"
    rf"{_EVER_AGAIN}$|"
    rf"(?:take|remove|delete|strike|get|scratch|erase|drop) (?:{_ME}|my name|my (?:phone )?number) (?:off|from)(?: "
    rf"of)? "
    rf"(?:{_LIST})|"
    r"(?:put|add|place) (?:me|us|my number|this number) (?:on|to) (?:\w+ ){0,3}?(?:do|not) not? ?call\b|"
    r"i am on (?:\w+ ){0,2}?do not call list|"
    rf"(?:unsubscribe(?: me)?|opt(?: me)? out)(?: (?:please|(?:from|of) (?:this|these|your|all|any)(?: "
    rf"{_CALLS[3:-1]})*(?:calls?|list)?))*$|"
    rf"no more (?:phone )?calls{_EVER_AGAIN}$|"
    r"(?:do|would|will) not (?:\w+ )?(?:want|wish|like) (?:to (?:get|receive|have) )?(?:any |any more |more |your |"
    rf"these )*(?:phone |sales )?calls?(?: from (?:you|your \w+))?{_EVER_AGAIN}$|"
    rf"(?:do|would) not (?:\w+ )?(?:want|wish|like) (?:you )?to (?:be )?(?:called|contacted|call (?:{_ME}|again))"
    rf"(?: by (?:you|anyone|anybody))?{_EVER_AGAIN}$|leave me alone{_EVER_AGAIN}$)"
    rf"|^(?:please |just |so )*(?:lose|forget) (?:my|this) (?:phone )?number{_EVER_AGAIN}$"
)
# Only if nothing else is said: the number may be removed from something else.
_REMOVE = re.compile(r"(?:please |just |no )*(?:remove|delete) my (?:phone )?number(?: please)?[ .!]*")
# Questions and reports: "why did you stop calling me", "you never call me back", "they said don't call".
_NO_WISH = re.compile(
    r"^(?:why|did|do|does|how|what|when|where|who|am|is|are|was|were|if|unless|they|he|she|has|have|it)\b(?! not\b)|"
    r"\b(?:they|he|she|you|i|we|who|it)(?: would| will| have| had| has| could)? never\b"
)
# "I didn't say stop calling me": the opposite.
_SPOKEN_OF = re.compile(r"\b(?:not|never|did i|would i)(?: \w+){0,4} $|\b(?:not|never) $")
# "Call my mobile", "I'll call you", "I'll wait": there may be other calls.
_OTHER_CALL = re.compile(
    r"^(?:please |just |rather |instead |then )*(?:call|phone|ring|try|reach)\b|"
    r"\b(?:i|we) (?:will|can|shall|would|am going to) (?:\w+ )?(?:call|phone|ring|wait|hold)\b"
)
# Lists and messages that are no calls, in all languages.
_OTHER_LIST = re.compile(
    r"\bwait(?:ing)?[ -]?list|\bguest list|\bnewsletter|\bpaperless|\bbilling\b|\bwarteliste|\bgästeliste|lista de "
    r"espera|"
    r"liste d'attente|lista d'attesa|\bwachtlijst|\bgastenlijst|listy (?:oczekuj|gości)|\bväntelist|\bgästlist|"
    r"वेटिंग|प्रतीक्षा|待ち|候补|等候|候補"
)
_PARTS = re.compile(r"[.!?;:,]| but | and | or | so ")

# By language; sought in a sentence without punctuation. They end it where a name or a time may follow.
_NO_CALLS_IN_OTHER_LANGUAGES = re.compile(
    "|".join(
        (
            # es
            r"\bno (?:me|nos) (?:vuelva[ns]? a (?:llamar|molestar)|(?:llame|llamen|llames|moleste|molesten|contacten?) "
            r"(?:más|nunca más|otra vez|de nuevo|nunca)|(?:llame|llamen|llames)(?: por favor| gracias)*$)|"
            r"\bno vuelva[ns]? a (?:llamar|llamarme|llamarnos)\b|"
            r"\b(?:deje|dejen|deja|pare|paren|para) de (?:llamar|llamarme|llamarnos|molestarme|molestar)\b|"
            r"\b(?:quíteme|quítenme|bórreme|bórrenme|elimíneme|elimínenme|sáqueme|sáquenme|"
            r"(?:quite|quiten|borre|borren|elimine|eliminen) mi (?:número|nombre)) de (?:\w+ ){0,2}?(?:lista|base)|"
            r"\bno (?:quiero|deseo) (?:más llamadas|recibir (?:más )?(?:sus )?llamadas|que me (?:llamen|llame|llames)"
            r"(?: más| nunca más| otra vez)*$)",
            # fr
            r"\bne (?:m'appelez|m'appelle|nous appelez|me rappelez|me téléphonez|me contactez|me dérangez|rappelez) "
            r"(?:plus|jamais)(?: jamais)?(?: s'il vous plaît| svp| merci)*$|"
            r"\b(?:arrêtez|arrête|cessez) de (?:m'appeler|nous appeler|me téléphoner|me déranger|me harceler|"
            r"me contacter|m'importuner|téléphoner)\b|"
            r"\b(?:retirez|enlevez|supprimez|effacez|rayez|ôtez)(?:-moi|-nous| mon numéro| mon nom| mes coordonnées) "
            r"(?:de|sur) (?:\w+ ){0,2}?(?:listes?|bases?|fichiers?)|"
            r"\bje (?:ne )?(?:veux|souhaite) plus (?:être (?:appelée?|contactée?|dérangée?)|qu'on m'appelle|"
            r"que vous m'appeliez|recevoir (?:d'appels|vos appels)|d'appels|de vos appels)",
            # de
            r"^(?:bitte )?(?:rufen sie|ruf|ruft) (?:(?:mich|uns|hier|bitte|doch|einfach|mir|diese nummer) )*"
            r"(?:nie(?:mals)?|nicht)(?: (?:wieder|mehr))+(?: (?:an|bei mir an))?(?: bitte| danke)*$|"
            r"^(?:bitte )?(?:rufen sie|ruf) (?:(?:mich|uns|bitte|hier) )*nicht an(?: bitte| danke)*$|"
            r"\b(?:hören sie|hör|hört) (?:(?:bitte|doch|endlich) )*auf (?:(?:mich|uns|hier|ständig|immer) )*"
            r"(?:anzurufen|zu belästigen)|"
            r"\b(?:nehmen|streichen|löschen|entfernen) sie (?:(?:mich|uns|bitte|meine nummer|meinen namen) "
            r")+(?:von|aus) "
            r"(?:\w+ ){0,2}?(?:\w*liste|\w*datenbank|\w*kartei|\w*verteiler)(?: bitte| danke)*$|"
            r"^(?:bitte )?keine (?:weiteren )?anrufe mehr(?: bitte| danke)*$|"
            r"\b(?:will|möchte|wünsche) (?:bitte )?(?:(?:nicht mehr|nie wieder|nie mehr)(?: von ihnen)? angerufen "
            r"werden|"
            r"keine (?:weiteren )?anrufe(?: mehr)?(?: von ihnen)?(?: bekommen| erhalten)?(?: bitte| danke)*$)",
            # it
            r"\bnon (?:mi|ci) (?:chiami|chiamate|chiamino|chiamare|richiami|richiamate|contatti|contattate|telefoni|"
            r"telefonate|disturbi|disturbate) (?:più|mai più|ancora)(?: per favore| grazie)*$|"
            r"\b(?:smetta|smettete|smettila|smettetela|smetti|la smetta) di (?:chiamarmi|chiamarci|chiamare|"
            r"telefonarmi|"
            r"telefonare|disturbarmi)\b|"
            r"\b(?:mi (?:tolga|tolgano|cancelli|cancellino|rimuova|rimuovano|elimini)|toglietemi|cancellatemi|"
            r"rimuovetemi|eliminatemi|(?:tolga|togliete|cancelli|cancellate) il mio (?:numero|nome)) "
            r"(?:da|dal|dalla|dalle|dai) (?:\w+ ){0,2}?(?:lista|liste|elenco|elenchi|database|archivio)|"
            r"\bnon voglio (?:più )?(?:essere (?:più )?(?:chiamat[oa]|contattat[oa])|ricevere (?:più )?(?:le vostre )?"
            r"(?:chiamate|telefonate))",
            # pt
            r"\bnão (?:me|nos) (?:ligue|liguem|ligues|telefone|telefonem|contacte|contate|incomode) "
            r"(?:mais|nunca mais|de novo|outra vez)(?: por favor| obrigad[oa])*$|"
            r"\bnão (?:ligue|liguem|telefone|telefonem) mais\b(?: para (?:mim|cá|aqui|este número))?"
            r"(?: por favor| obrigad[oa])*$|\bnunca mais (?:me )?(?:ligue|liguem|telefone|telefonem)\b|"
            r"\b(?:pare|parem|deixe|deixem) de (?:me )?(?:ligar|telefonar|incomodar)|"
            r"\b(?:me (?:tire|tirem|remova|removam|retire|retirem)|(?:tire|tirem|remova|removam|retire|retirem|apague|"
            r"apaguem)(?:-me| o meu número| meu número| o meu nome| meu nome)) (?:da|de|dessa|desta) (?:\w+ ){0,2}?"
            r"(?:lista|base)|\bnão quero (?:mais (?:chamadas|ligações|que me liguem)|receber (?:mais )?(?:chamadas|"
            r"ligações))",
            # nl
            r"\bbel (?:(?:me|mij|ons|alstublieft|hier|dit nummer) )*(?:nooit|niet)(?: (?:meer|weer))+(?: op| terug)?"
            r"(?: alstublieft| aub| bedankt)*$|"
            r"\b(?:stop|hou op|houd op|houdt op) (?:ermee )?(?:met )?(?:(?:mij|me|ons) )?(?:te bellen|op te bellen|"
            r"bellen|"
            r"lastig te vallen|lastigvallen)\b|"
            r"\b(?:haal|verwijder|schrap) (?:me|mij|ons|mijn nummer|mijn naam) (?:van|uit) (?:\w+ ){0,2}?"
            r"(?:\w*lijst|\w*bestand|database)|\bwil (?:niet meer|nooit meer) (?:door u )?gebeld worden\b|"
            r"\bwil geen telefoontjes meer\b",
            # pl
            r"\b(?:nie (?:dzwońcie|dzwoń|dzwonić)(?: już| więcej| do mnie| nigdy| tutaj)+(?: proszę| dziękuję)*$)|"
            r"\b(?:więcej|nigdy więcej|już) (?:do mnie )?nie (?:dzwonić|dzwońcie|dzwoń)\b|"
            r"\b(?:przestańcie|przestań|proszę przestać) (?:do mnie |tu )?(?:dzwonić|wydzwaniać)|"
            r"\b(?:usuńcie|usuń|usunąć|wykreślcie|wykreślić|skreślcie|skreślić|wypiszcie) (?:proszę )?(?:mnie|mój "
            r"numer|"
            r"moje dane) z (?:\w+ ){0,2}?(?:listy|bazy)|"
            r"\bnie (?:życzę sobie|chcę) (?:już |więcej )?(?:tych |takich )?(?:telefonów|żebyście (?:do mnie "
            r")?dzwonili)",
            # sv
            r"\bring (?:(?:mig|oss|hit|till mig|till oss) )*(?:aldrig(?: mer| igen)?|inte(?: (?:mer|mera|igen|fler "
            r"gånger))+)"
            r"(?: (?:mig|oss|hit|till mig|tack|snälla))*$|\bsluta (?:att )?ringa\b|"
            r"\b(?:ta bort|stryk) (?:mig|oss|mitt nummer|mitt namn) (?:från|ur) (?:\w+ ){0,2}?(?:\w*lista|\w*listan|"
            r"\w*listor|register|registret)|\bvill inte (?:bli uppringd|ha (?:fler|några fler) samtal|"
            r"att ni ringer(?: mig)?(?: mer| igen)+)",
        )
    )
)
# Hindi's vowel signs are no letters for \b, and Chinese and Japanese put no blanks between words.
_NO_CALLS_WITHOUT_BLANKS = re.compile(
    r"(?:कॉल|फोन|फ़ोन) (?:मत|न|ना|नहीं) (?:करो|करना|कीजिए|कीजिएगा|करें|करिए|करिएगा|किया करो|किया करें)|"
    r"(?:कॉल|फोन|फ़ोन) करना (?:बंद|बन्द)|(?:सूची|लिस्ट) (?:से|में से) (?:हटा|निकाल|मिटा)|"
    r"(?:もう|二度と|今後|これ以上).{0,8}電話.{0,3}(?:ないで|るな|やめて|止めて|ないように)|"
    r"電話(?:を|は)?(?:し|かけ|掛け|してこ|かけてこ)ないで|電話.{0,6}(?:の|こと)(?:を|は)?(?:やめて|止めて)|"
    r"(?:リスト|名簿)から.{0,6}(?:外し|はずし|削除|消し)|"
    r"(?:不要|别|別|请勿|請勿|不准)(?:再|老|总|總|一直)?(?:给|給)?(?:我|我们|我們)?(?:再)?打(?:电话|電話|过来|過來|来|來|给我|給我|了)|"
    r"(?:不要|别|別|请勿|請勿)(?:再)?(?:来电|來電|骚扰我|騷擾我)|停止(?:给我|給我)?打(?:电话|電話)|"
    r"(?:把|将|請將|请将|从|從).{0,12}(?:名单|列表|名單|数据库)(?:上|中|里|裡)?.{0,6}(?:删|刪|移除|去掉|划掉|拿掉)|"
    r"(?:名单|列表|名單)(?:上|中|里|裡)?(?:删除|刪除|移除|去掉)我"
)
# Not now, today, tomorrow, in the evening.
_ONLY_NOW = re.compile(
    r"अभी|आज|कल|रात|सुबह|今は|今日|明日|今夜|夜に|現在は|现在|今天|明天|今晚|晚上|早上|现在|這時|这时"
)


# A sentence and the mark at its end.
_SENTENCES = re.compile(r"([^.!?;。！？।]+)([.!?;。！？।]?)")


def wants_no_calls(said: str) -> bool:
    """Whether the caller says that they want no more calls, in any of the twelve languages.

    "Don't call me Ann", "don't call me tomorrow" and "I'll call you" are none.
    """
    said = said[-LONGEST:]
    english = normalize(said)
    if _OTHER_LIST.search(english):
        return False
    if _REMOVE.fullmatch(english):
        return True
    parts = [part for each in _PARTS.split(english) if (part := each.strip())]
    if not any(_OTHER_CALL.search(part) for part in parts):
        found = ((part, _NO_CALLS.search(part)) for part in parts if not _NO_WISH.search(part))
        if any(wish and not _SPOKEN_OF.search(part[: wish.start()]) for part, wish in found):
            return True
    for sentence, mark in _SENTENCES.findall(said):
        text = _without_marks(sentence)
        if mark not in ("?", "？") and _NO_CALLS_IN_OTHER_LANGUAGES.search(text):
            return True
        if _NO_CALLS_WITHOUT_BLANKS.search(text) and not _ONLY_NOW.search(text):
            return True
    return False
