"""Yes, no, another time, cancelling and neither in other languages than English, as whole phrases."""

from collections.abc import Mapping

# By language, then by stance; phrases are separated by "|".
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
